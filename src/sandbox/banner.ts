import { VERSION } from "../observability/version.ts";

/** The text to print once the sandbox runs: its addresses, and commands to paste. It contains no secret. */
export function describeSandbox(at: {
  gatewayUrl: string;
  rpcUrl: string;
  socialUrl: string;
  /** The account used in the commands, with its address in base58. */
  example: { handle: string; id: string; address: string };
}): string {
  const { gatewayUrl, rpcUrl, socialUrl, example } = at;
  const addFees = {
    jsonrpc: "2.0",
    id: 1,
    method: "sandboxAddCreatorFees",
    params: [example.address, 1_500_000_000],
  };
  return `
Tributary ${VERSION} is running on a sandbox: its own chain and social network, in memory. No real money is involved.

  Gateway                 ${gatewayUrl}
  GraphiQL                ${gatewayUrl}/graphql
  Sandbox chain (RPC)     ${rpcUrl}
  Sandbox social network  ${socialUrl}

Look up ${example.handle}, collect, and add 1.5 SOL of new fees to the vault:

  curl '${gatewayUrl}/wallet/lookup?handle=${example.handle}'
  curl -X POST ${gatewayUrl}/collect -d '${JSON.stringify({ socialId: example.id })}'
  curl ${rpcUrl} -H 'content-type: application/json' -d '${JSON.stringify(addFees)}'
`;
}
