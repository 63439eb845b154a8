/** What a person who started the sandbox needs to know, with lines to paste. Holds no secret. */
export function describeSandbox(at: {
  gatewayUrl: string;
  rpcUrl: string;
  socialUrl: string;
  /** The id, and the address in base58, of the account that the lines use. */
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
Tributary runs on a sandbox: a chain and a social network of its own, in memory. No real money is in it.

  Gateway                 ${gatewayUrl}
  GraphiQL                ${gatewayUrl}/graphql
  Sandbox's chain (RPC)   ${rpcUrl}
  Sandbox's network       ${socialUrl}

Look up ${example.handle}, collect, and put 1.5 SOL of new fees into the vault:

  curl '${gatewayUrl}/wallet/lookup?handle=${example.handle}'
  curl -X POST ${gatewayUrl}/collect -d '${JSON.stringify({ socialId: example.id })}'
  curl ${rpcUrl} -H 'content-type: application/json' -d '${JSON.stringify(addFees)}'
`;
}
