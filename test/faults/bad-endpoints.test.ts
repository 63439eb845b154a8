import { describe, expect, it, onTestFinished, vi } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { behindBy, OTHER_CLUSTER, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { startRedis } from "../support/redis-server.ts";
import { rpcError } from "../support/rpc-answers.ts";
import { isMethod, isOwnCall } from "../support/sandbox.ts";
import { createSkipTime } from "../support/skip-time.ts";
import type { World } from "../support/world.ts";
import { transfer } from "../support/faucet.ts";

const SOL = 1_000_000_000n;
/** More than an answer's slot may differ from where its endpoint can be. */
const JUMP = 5_000;
/** Reads fail soon while no endpoint has reached the required slot. */
const SHORT_READS = { RPC_TIMEOUT_MS: "2000" };

let world: World;
let first: LyingEndpoint;
let second: LyingEndpoint;
async function start(count: 1 | 2 = 2, env: Record<string, string> = {}) {
  const started = await startWithLyingEndpoints(count, env);
  world = started.world;
  [first, second] = started.endpoints;
  return started.endpoints;
}
/** The same, after the checks of the start. */
async function startAll(count: 1 | 2 = 2, env: Record<string, string> = {}): Promise<void> {
  const endpoints = await start(count, env);
  await world.gateway.start();
  for (const { calls } of endpoints) calls.length = 0;
}
const hostOf = ({ url }: LyingEndpoint) => new URL(url).host;
const errorsAbout = (endpoint: LyingEndpoint) =>
  world.logLines.filter(
    (line) => line.includes('"level":50') && line.includes(`"host":"${hostOf(endpoint)}"`),
  );
const vaultOf = async (handle = "creator"): Promise<unknown> =>
  (await world.lookup(handle)).body.balance?.vault;
const collect = async (handle = "creator") => (await world.collect(world.account(handle).id)).body;
/** What /readyz warns of. */
const warnings = async (): Promise<string[] | undefined> =>
  (await world.request("/readyz")).body.warnings;
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
  expect((await warnings())!.join()).toContain(`${hostOf(second)}: a chain endpoint is on another`);
});

it("an error of the preferred endpoint to any method fails no request, and /readyz warns", async () => {
  await startAll();
  expect(await warnings()).toBeUndefined();
  first.faults.add({ then: rpcError({ code: -32002 }) });
  expect(await vaultOf()).toBe("3.1000");
  expect(await collect()).toMatchObject({ collected: "3.1000" });
  expect(await warnings()).toContainEqual(
    expect.stringMatching(new RegExp(`^${hostOf(first)}: a chain endpoint (fails|refuses)`)),
  );
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

it("an empty history of an endpoint that has moved to another cluster does not count", async () => {
  await startAll();
  const { address, id } = world.account("artist001");
  const { chain } = world.sandbox;
  const signature = transfer(chain, address, 1_000_000_000n);
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

/** Adds a SOL to the account's fees. Returns what a node returns that does not know of it yet. */
function addFees() {
  const { chain } = world.sandbox;
  const { creatorVault } = world.account("creator");
  chain.advanceSlots(5);
  chain.setBalance(creatorVault, chain.balance(creatorVault) + SOL);
  return (account: any, address: string) =>
    address === creatorVault
      ? { ...account, lamports: Number(account.lamports) - Number(SOL) }
      : account;
}

it("a machine that was suspended for 400 s collects at once", async () => {
  await startAll(2);
  expect(await collect("artist001")).toMatchObject({ success: true });
  // The monotonic clock stands still meanwhile.
  const now = Date.now.bind(Date);
  vi.spyOn(Date, "now").mockImplementation(() => now() + 400_000);
  onTestFinished(() => void vi.restoreAllMocks());
  world.sandbox.chain.advanceSlots(2_000);
  expect(await vaultOf()).toBe("3.1000");
  expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
  expect(world.sandbox.landedCollects()).toHaveLength(2);
  expect(world.logLines.filter((line) => line.includes('"level":40'))).toEqual([]);
});

describe("a balance never goes back for 60 s", () => {
  it("with one endpoint, nothing older is shown", async () => {
    await startAll(1, SHORT_READS);
    const skip = createSkipTime();
    const toOlder = addFees();
    expect(await vaultOf()).toBe("4.1000");
    first.lie(behindBy(10, toOlder));
    expect(await vaultOf()).toBeUndefined();
    expect(await vaultOf("artist001")).toBeDefined();
    skip(61_000);
    expect(await vaultOf()).toBe("3.1000");
  });

  it.each([1, 2] as const)(
    "nor behind a collect, with nodes that ignore minContextSlot: %i endpoints",
    async (count) => {
      await startAll(count, count === 1 ? SHORT_READS : {});
      const { chain } = world.sandbox;
      const before = chain.slot("finalized");
      const { creatorVault } = world.account("creator");
      const fees = Number(chain.balance(creatorVault));
      first.lie({
        getMultipleAccounts(tellTruth, [keys]) {
          const value = tellTruth().value.map((account: any, i: number) =>
            keys[i] === creatorVault ? { ...account, lamports: fees } : account,
          );
          return { context: { slot: before }, value };
        },
      });
      expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
      expect(await vaultOf()).toBe(count === 1 ? undefined : "0.0000");
      first.stopLying();
      expect(await vaultOf()).toBe("0.0000");
      expect(await collect()).toMatchObject({ error: "NOTHING_TO_COLLECT" });
    },
  );
});

describeWithRedis("behind a collect of another replica", () => {
  it("the account's balance never goes back, and an endpoint that is 4 s behind shows others", async () => {
    const redis = await startRedis();
    await startAll(1, { ...SHORT_READS, REDIS_URL: redis.url });
    onTestFinished(() => redis.stop());
    const { chain, feePayer } = world.sandbox;
    const channel = `tributary:v2:landed-slot:${feePayer}`;
    first.lie(behindBy(20));
    await expect.poll(() => redis.command("PUBSUB", "NUMSUB", channel)).toEqual([channel, 1]);
    await redis.command(
      "PUBLISH",
      channel,
      `${chain.slot("finalized")} ${world.account("creator").address}`,
    );
    await expect.poll(() => vaultOf()).toBeUndefined();
    expect(await vaultOf("artist002")).toBeDefined();
    first.stopLying();
    expect(await vaultOf()).toBe("3.1000");
  });
});

describe("a simulation is at least as new as the read that it checks", () => {
  it("it requires the slot of the read", async () => {
    await startAll(2);
    let slot: unknown;
    first.lie({
      getMultipleAccounts(tellTruth) {
        const truth = tellTruth();
        ({ slot } = truth.context);
        return truth;
      },
    });
    expect(await collect()).toMatchObject({ success: true });
    const [simulation] = first.calls.filter(isMethod("simulateTransaction"));
    expect(simulation!.params[1]).toMatchObject({ minContextSlot: slot });
  });

  it("a simulation and a blockhash of an older state are not used", async () => {
    await startAll(2);
    const { simulateTransaction, getLatestBlockhash } = behindBy(1_200);
    first.lie({
      simulateTransaction: simulateTransaction!,
      getLatestBlockhash: getLatestBlockhash!,
    });
    expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
    expect(second.calls.filter(isMethod("simulateTransaction", "getLatestBlockhash"))).toHaveLength(
      2,
    );
  });
});

it.each([
  ["is not base58", "0OIl"],
  ["is too short", "1".repeat(31)],
])("a blockhash that %s is a fault of the chain, not a bug", async (_, blockhash) => {
  await start(1);
  first.lie({
    getLatestBlockhash(tellTruth) {
      const { context, value } = tellTruth();
      return { context, value: { ...value, blockhash } };
    },
  });
  expect(await collect()).toMatchObject({ error: "COLLECT_FAILED" });
  expect(first.calls.filter(isMethod("sendTransaction"))).toEqual([]);
  const lines = world.logLines.map((line) => JSON.parse(line));
  expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
  expect(lines.map(({ hint }) => hint)).toContain(
    "the chain does not answer as expected: check the endpoints in SOLANA_RPC_URL",
  );
  first.stopLying();
  expect(await collect()).toMatchObject({ success: true });
});
