import { VERSION } from "../observability/version.ts";

/**
 * The text to print once the sandbox runs: its addresses, and commands to paste. It contains no
 * secret.
 */
export function describeSandbox(
  gatewayUrl: string,
  env: { SOLANA_RPC_URL: string; SOCIAL_API_URL: string },
  /** Which programs the chain runs for the launch platform's. */
  programs: string,
  /** The account used in the commands. */
  example: { handle: string; id: string },
): string {
  const fees = { socialId: example.id, source: "VAULT" };
  return `
Tributary ${VERSION} is running on a sandbox: its own chain and social network, in memory. No real money is involved.

  Gateway                 ${gatewayUrl}
  Home page               ${gatewayUrl}/
  REST                    ${gatewayUrl}/docs
  GraphiQL                ${gatewayUrl}/graphql
  Sandbox chain (RPC)     ${env.SOLANA_RPC_URL}
  Sandbox social network  ${env.SOCIAL_API_URL}
  Launch platform         ${programs}

Look up ${example.handle}, collect, and add new fees to the vault:

  curl '${gatewayUrl}/wallet/lookup?handle=${example.handle}'
  curl -X POST ${gatewayUrl}/collect -d '${JSON.stringify({ socialId: example.id })}'
  curl ${gatewayUrl}/sandbox/fees -d '${JSON.stringify(fees)}'
`;
}
