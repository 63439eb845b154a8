import { Keypair } from "@solana/web3.js";
import { expect, it } from "vitest";
import { startJsonServer } from "../support/doubles/json-server.ts";
import { startProgram } from "../support/program.ts";

it("with NODE_ENV=development no internal error detail reaches a caller", async () => {
  const detail = "Error: a secret of the provider at /srv/provider.js:1:1";
  const upstream = await startJsonServer(() => ({
    status: 500,
    body: {
      message: detail,
      stack: detail,
      errors: [{ message: detail }],
      error: { message: detail },
    },
  }));
  const program = startProgram({
    NODE_ENV: "development",
    PORT: "0",
    RATE_LIMIT_MAX: "1000",
    SOCIAL_API_URL: upstream.url,
    SOCIAL_API_TOKEN: "a-token",
    SOLANA_RPC_URL: upstream.url,
    SOCIAL_TIMEOUT_MS: "500",
    RPC_TIMEOUT_MS: "500",
    FEE_PAYER_KEYPAIR: JSON.stringify([...Keypair.generate().secretKey]),
    ESCROW_PROGRAM_ID: Keypair.generate().publicKey.toBase58(),
  });
  const url = await program.address(/"url":"(http[^"]+)"/);
  const send = async (body: string) => {
    const response = await fetch(`${url}/graphql`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    return response.text();
  };
  const bodies = [
    '{ wallet(handle: "creator") { address } }',
    '{ walletById(socialId: "17") { handle balance { vault } } }',
    'mutation { collect(socialId: "17") { success } }',
    "{ nothing }",
    "{",
    "{ wallet(handle: 5) { balance } }",
    "query ($a: String!) { wallet(handle: $a) { address } }",
  ].map((query) => JSON.stringify({ query }));
  for (const body of [
    ...bodies,
    "",
    "{",
    "[]",
    "null",
    '{"query":5}',
    '{"query":"{__typename}","variables":5}',
  ]) {
    // Twice: by Yoga, then from the cache.
    for (let i = 0; i < 2; i++) {
      const text = await send(body);
      expect(JSON.parse(text).errors.length).toBeGreaterThan(0);
      expect(text).not.toMatch(
        /secret|provider|127\.0\.0\.1|node_modules|\.[jt]s\b|stack|originalError|exception|at \w+ \(|SyntaxError|TypeError|a-token/i,
      );
    }
  }
  await upstream.close();
});
