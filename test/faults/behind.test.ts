import { describe, expect, it, onTestFinished, vi } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { behindBy, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { openEventStream } from "../support/event-stream.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { startRedis } from "../support/redis-server.ts";
import { isMethod } from "../support/sandbox.ts";
import { createSkipTime } from "../support/skip-time.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;
/** Reads fail soon while no endpoint has reached the required slot. */
const SHORT_READS = { RPC_TIMEOUT_MS: "2000" };

let world: World;
let endpoints: readonly LyingEndpoint[];
let first: LyingEndpoint;
let second: LyingEndpoint;
async function start(count: 1 | 2, env: Record<string, string> = {}): Promise<void> {
  const started = await startWithLyingEndpoints(count, env);
  ({ world, endpoints } = started);
  [first, second] = started.endpoints;
  await world.gateway.start();
  forgetCalls();
}
const vaultOf = async (handle = "creator"): Promise<unknown> =>
  (await world.lookup(handle)).body.balance?.vault;
const collect = async (handle = "creator") => (await world.collect(world.account(handle).id)).body;
function forgetCalls(): void {
  for (const { calls } of endpoints) calls.length = 0;
}
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

it.each([1, 2] as const)(
  "a machine that was suspended for 400 s collects at once: %i endpoints",
  async (count) => {
    await start(count);
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
  },
);

describe("a balance never goes back for 60 s", () => {
  it("with one endpoint, nothing older is shown", async () => {
    await start(1, SHORT_READS);
    const skip = createSkipTime();
    const toOlder = addFees();
    expect(await vaultOf()).toBe("4.1000");
    first.lie(behindBy(10, toOlder));
    expect(await vaultOf()).toBeUndefined();
    expect(await vaultOf("artist001")).toBeDefined();
    skip(61_000);
    expect(await vaultOf()).toBe("3.1000");
  });

  it("with two, the other one answers, in a stream too", async () => {
    await start(2);
    const { id } = world.account("creator");
    const query = `subscription { walletById(socialId: "${id}") { balance { vault } } }`;
    const stream = await openEventStream(world.url, { query });
    const shown = () => stream.events().map(({ data }) => data.walletById.balance.vault as string);
    await expect.poll(shown).toEqual(["3.1000"]);
    const toOlder = addFees();
    await expect.poll(shown).toEqual(["3.1000", "4.1000"]);
    first.lie(behindBy(10, toOlder));
    for (let i = 0; i < 5; i++) expect(await vaultOf()).toBe("4.1000");
    first.stopLying();
    addFees();
    await expect.poll(() => shown().at(-1)).toBe("5.1000");
    expect(shown()).toEqual(["3.1000", "4.1000", "5.1000"]);
    stream.close();
  });

  it.each([1, 2] as const)(
    "nor behind a collect, with nodes that ignore minContextSlot: %i endpoints",
    async (count) => {
      await start(count, count === 1 ? SHORT_READS : {});
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

  it("behind a provider of nodes that differ by slots, after a collect", async () => {
    await start(1);
    const { creatorVault } = world.account("creator");
    const fees = Number(world.sandbox.chain.balance(creatorVault));
    const older = behindBy(3, (account, address) =>
      address === creatorVault ? { ...account, lamports: fees } : account,
    );
    let calls = 0;
    first.lie({
      getMultipleAccounts: (tellTruth, params) =>
        calls++ % 2 === 0 ? tellTruth() : older.getMultipleAccounts!(tellTruth, params),
    });
    expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
    for (let i = 0; i < 5; i++) expect(await vaultOf()).toBe("0.0000");
    expect(await collect()).toMatchObject({ error: "NOTHING_TO_COLLECT" });
  });
});

describeWithRedis("behind a collect of another replica", () => {
  it("the account's balance never goes back, and an endpoint that is 4 s behind shows others", async () => {
    const redis = await startRedis();
    await start(1, { ...SHORT_READS, REDIS_URL: redis.url });
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
    await start(2);
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
    await start(2);
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
