import { createClient as createSseClient } from "graphql-sse";
import { expect } from "vitest";
import { from } from "../support/client.ts";
import { chain, withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ STREAM_SECONDS: 1 });

const WATCH = `subscription Watch($handle: String!) {
  wallet(handle: $handle) { id handle profile { name verified } balance { vault } }
}`;

function setFees(handle: string, lamports: bigint): void {
  chain.setBalance(world.account(handle).creatorVault, chain.rentExemptMinimum(0) + lamports);
}

it("graphql-sse gets the wallet and its changes, and comes back when the service ends the stream", async () => {
  setFees("artist001", 10n ** 9n);
  let connections = 0;
  const client = createSseClient({
    url: `${world.url}/graphql`,
    headers: from("192.0.2.1"),
    retry: () => Promise.resolve(),
    on: { connected: () => connections++ },
  });
  const seen: string[] = [];
  const retries: unknown[] = [];
  let isOver = false;
  const stop = client.subscribe<any, any>(
    { query: WATCH, variables: { handle: "artist001" } },
    {
      next({ data, errors, extensions }) {
        seen.push(errors ? JSON.stringify(errors) : data.wallet.balance.vault);
        if (extensions) retries.push(extensions.retryAfterSeconds);
      },
      error: () => (isOver = true),
      complete: () => (isOver = true),
    },
  );
  await expect.poll(() => seen).toContain("1.0000");
  setFees("artist001", 2n * 10n ** 9n);
  await expect.poll(() => seen).toContain("2.0000");
  await expect.poll(() => connections).toBeGreaterThan(1);
  expect(retries[0]).toEqual(expect.any(Number));
  setFees("artist001", 3n * 10n ** 9n);
  await expect.poll(() => seen.at(-1)).toBe("3.0000");
  expect(isOver).toBe(false);
  stop();
  client.dispose();
});
