import { expect, it } from "vitest";
import { OTHER_CLUSTER, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { isOwnCall } from "../support/sandbox.ts";
import { createSkipTime } from "../support/skip-time.ts";
import type { World } from "../support/world.ts";

/** More than an answer's slot may differ from where its endpoint can be. */
const JUMP = 5_000;

let world: World;
let first: LyingEndpoint;
let second: LyingEndpoint;
async function start(count: 1 | 2 = 2): Promise<void> {
  const started = await startWithLyingEndpoints(count);
  world = started.world;
  [first, second] = started.endpoints;
}
const hostOf = ({ url }: LyingEndpoint) => new URL(url).host;
const errorsAbout = (endpoint: LyingEndpoint) =>
  world.logLines.filter(
    (line) => line.includes('"level":50') && line.includes(`"host":"${hostOf(endpoint)}"`),
  );
const vaultOf = async (handle = "creator"): Promise<unknown> =>
  (await world.lookup(handle)).body.balance?.vault;
const collect = async (handle = "creator") => (await world.collect(world.account(handle).id)).body;
const isAsked = ({ calls }: LyingEndpoint) => calls.some(isOwnCall);

it("an endpoint on another cluster is asked for nothing else, not even as the last resort, and logged once", async () => {
  await start();
  second.lie(OTHER_CLUSTER);
  expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
  const lift = first.faults.add({ then: "reset" });
  expect(await vaultOf("artist001")).toBeUndefined();
  expect(await collect("artist002")).toMatchObject({ error: "COLLECT_FAILED" });
  lift();
  expect(await vaultOf("artist001")).not.toBe("0.0000");
  expect(isAsked(second)).toBe(false);
  expect(errorsAbout(second)).toEqual([expect.stringContaining("is on another cluster")]);
  expect(errorsAbout(first)).toEqual([]);
  const response = await fetch(`${world.url}/readyz`);
  const body = (await response.json()) as { warnings: string[] };
  expect(body.warnings.join()).toContain(`${hostOf(second)}: a chain endpoint is on another`);
});

it("a start does not fail because the spare is on another public cluster while the preferred one is down", async () => {
  await start();
  second.lie(OTHER_CLUSTER);
  const lift = first.faults.add({ then: "reset" });
  await world.gateway.start();
  expect(world.logLines.join("")).toMatch(/"level":40[^\n]*there is no program \w+ on devnet/);
  const skip = createSkipTime();
  lift();
  skip(30_000);
  await expect.poll(() => vaultOf()).toBe("3.1000");
});

/** What an endpoint answers after it has moved to another cluster, which is ahead. */
function moved(): Parameters<LyingEndpoint["lie"]>[0] {
  const { getMultipleAccounts, ...others } = OTHER_CLUSTER;
  return {
    ...others,
    getMultipleAccounts(tellTruth, params) {
      const { context, value } = getMultipleAccounts!(tellTruth, params) as any;
      return { context: { slot: Number(context.slot) + JUMP }, value };
    },
  };
}

it("the start reports each endpoint, with its cluster or that it does not answer", async () => {
  await start();
  second.lie(OTHER_CLUSTER);
  await world.gateway.start();
  expect(world.logLines.join("")).toContain(
    `SOLANA_RPC_URL: ${hostOf(first)} is on a private cluster`,
  );
  expect(world.logLines.join("")).toMatch(
    new RegExp(`"level":40[^\n]*SOLANA_RPC_URL: ${hostOf(second)} is on devnet, the others on`),
  );
  second.faults.add({ then: "reset" });
  await world.gateway.start();
  expect(world.logLines.join("")).toMatch(
    new RegExp(`SOLANA_RPC_URL: ${hostOf(second)} does not answer \\(ECONNRESET\\)`),
  );
});

it("an empty history of an endpoint that has moved to another cluster does not count", async () => {
  await start();
  await world.gateway.start();
  const { address, id } = world.account("artist001");
  const { chain } = world.sandbox;
  const signature = chain.transfer(address, 1_000_000_000n);
  chain.advanceSlots(1);
  first.lie({
    ...moved(),
    getSignaturesForAddress: () => [],
    getTransaction: () => null,
  });
  const query =
    "query ($id: String!) { walletById(socialId: $id) { history { nodes { signature } } } }";
  const read = async () => {
    const { body } = await world.graphql(query, { id });
    return body.data.walletById.history?.nodes;
  };
  const lift = second.faults.add({ times: 1, then: { status: 503, body: "" } });
  expect(await read()).toEqual([{ signature }]);
  lift();
  expect(await read()).toEqual([{ signature }]);
  expect(errorsAbout(first)).toHaveLength(1);
});
