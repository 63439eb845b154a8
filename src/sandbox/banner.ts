import { VERSION } from "../observability/version.ts";

/**
 * The text to print once the sandbox runs: its addresses, and commands to paste. It contains no
 * secret.
 */
export function describeSandbox(at: {
  gatewayUrl: string;
  rpcUrl: string;
  socialUrl: string;
  /** Which programs the chain runs for the launch platform's. */
  programs: string;
  /** The account used in the commands. */
  example: { handle: string; id: string };
}): string {
  const { gatewayUrl, rpcUrl, socialUrl, programs, example } = at;
  const fees = { socialId: example.id, source: "VAULT" };
  return `
Tributary ${VERSION} is running on a sandbox: its own chain and social network, in memory. No real money is involved.

  Gateway                 ${gatewayUrl}
  Home page               ${gatewayUrl}/
  REST                    ${gatewayUrl}/docs
  GraphiQL                ${gatewayUrl}/graphql
  Sandbox chain (RPC)     ${rpcUrl}
  Sandbox social network  ${socialUrl}
  Launch platform         ${programs}

Look up ${example.handle}, collect, and add new fees to the vault:

  curl '${gatewayUrl}/wallet/lookup?handle=${example.handle}'
  curl -X POST ${gatewayUrl}/collect -d '${JSON.stringify({ socialId: example.id })}'
  curl ${gatewayUrl}/sandbox/fees -d '${JSON.stringify(fees)}'
`;
}
