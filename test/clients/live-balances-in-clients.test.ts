import { createClient as createSseClient } from "graphql-sse";
import { EventSource } from "undici";
import { expect, onTestFinished } from "vitest";
import { from } from "../support/client.ts";
import { eventually } from "../support/eventually.ts";
import { withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ STREAM_SECONDS: 3 });

const WATCH = `subscription Watch($handle: String!) {
  wallet(handle: $handle) { id handle profile { name verified } balance { vault } }
}`;

function setFees(handle: string, lamports: bigint): void {
  const { chain } = world.sandbox;
  chain.setBalance(world.account(handle).creatorVault, chain.rentExemptMinimum(0) + lamports);
}

it("graphql-sse gets the wallet and its changes, and comes back when the service ends the stream", async () => {
  setFees("artist001", 10n ** 9n);
  let connections = 0;
  const client = createSseClient({
    url: `${world.url}/graphql`,
    headers: from("192.0.2.1"),
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
  await eventually(() => {
    expect(seen).toContain("1.0000");
  });
  setFees("artist001", 2n * 10n ** 9n);
  await eventually(() => {
    expect(seen).toContain("2.0000");
  });
  await eventually(() => {
    expect(connections).toBeGreaterThan(1);
  });
  expect(retries[0]).toEqual(expect.any(Number));
  setFees("artist001", 3n * 10n ** 9n);
  await eventually(() => {
    expect(seen.at(-1)).toBe("3.0000");
  });
  expect(isOver).toBe(false);
  stop();
  client.dispose();
});

it("EventSource gets the wallet and its changes, and comes back after the time that the last event says", async () => {
  setFees("artist008", 10n ** 9n);
  const query = new URLSearchParams({ query: WATCH, variables: '{"handle":"artist008"}' });
  const source = new EventSource(`${world.url}/graphql?${query}`);
  onTestFinished(() => {
    source.close();
  });
  const openedAt: number[] = [];
  const events: { at: number; data: any; extensions?: any }[] = [];
  const shown = () => events.map(({ data }) => data.wallet.balance.vault);
  source.addEventListener("open", () => openedAt.push(performance.now()));
  source.addEventListener("next", ({ data }: any) =>
    events.push({ at: performance.now(), ...JSON.parse(data) }),
  );
  await eventually(() => {
    expect(shown()).toContain("1.0000");
  });
  setFees("artist008", 2n * 10n ** 9n);
  await eventually(() => {
    expect(openedAt).toHaveLength(2);
  });
  const last = events.find(({ extensions }) => extensions)!;
  const { retryAfterSeconds } = last.extensions;
  // The seconds are rounded up.
  expect(openedAt[1]! - last.at).toBeGreaterThanOrEqual((retryAfterSeconds - 1) * 1_000);
  setFees("artist008", 3n * 10n ** 9n);
  await eventually(() => {
    expect(shown().at(-1)).toBe("3.0000");
  });
});

it("graphql-sse gets the error of an unknown handle at once, without trying again", async () => {
  let connections = 0;
  const client = createSseClient({
    url: `${world.url}/graphql`,
    headers: from("192.0.2.2"),
    on: { connected: () => connections++ },
  });
  const results: any[] = [];
  for await (const result of client.iterate({ query: WATCH, variables: { handle: "nobodyatall" } }))
    results.push(result);
  expect(results).toMatchObject([
    { errors: [{ path: ["wallet"], extensions: { code: "SOCIAL_NOT_FOUND" } }] },
  ]);
  expect(connections).toBe(1);
  client.dispose();
});
