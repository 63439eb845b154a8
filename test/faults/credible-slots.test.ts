import { afterEach, expect, it, vi } from "vitest";
import { RENT_SYSVAR } from "../../src/chain/primitives/rent.ts";
import { CLOCK_SYSVAR } from "../../src/chain/slots/clock.ts";
import { toAccountJson } from "../../src/sandbox/rpc/account-json.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import {
  earlierClock,
  startLyingEndpoint,
  type LyingEndpoint,
} from "../support/doubles/lying-endpoint.ts";
import { openEventStream } from "../support/event-stream.ts";
import { startRedis } from "../support/redis-server.ts";
import { startWorld, type World } from "../support/world.ts";

/** As on mainnet since October 2026. */
const SLOT_SECONDS = 0.2;

let world: World;
/** The preferred endpoint. */
let first: LyingEndpoint;
let slots: NodeJS.Timeout | undefined;
afterEach(async () => {
  vi.restoreAllMocks();
  clearInterval(slots);
  first.stopLying();
  first.faults.clear();
  await world.close();
  await first.close();
});

/** A gateway with `first`, and perhaps an honest endpoint; slots advance as on mainnet. */
async function start({
  withHonest,
  env = {},
}: {
  withHonest: boolean;
  env?: Record<string, string>;
}): Promise<void> {
  world = await startWorld(async (sandbox) => {
    first = await startLyingEndpoint(sandbox);
    // Slots below the first one do not exist.
    sandbox.chain.advanceSlots(3_000);
    const SOLANA_RPC_URL = withHonest ? `${first.url},${sandbox.rpc.url}` : first.url;
    return { SOLANA_RPC_URL, RPC_TIMEOUT_MS: "12000", ...env };
  });
  slots = setInterval(() => {
    world.sandbox.chain.advanceSlots(1);
  }, SLOT_SECONDS * 1_000);
}

const vaultOf = async (handle: string): Promise<unknown> =>
  (await world.lookup(handle)).body.balance?.vault;
const collect = (handle: string) => world.collect(world.account(handle).id);
const advance = (count: number) => {
  world.sandbox.chain.advanceSlots(count);
};

/**
 * What `first` says of the chain while it is this many slots behind, when no account had anything.
 */
const behindBy = (behind: number, isNow: () => boolean = () => true) => {
  first.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      const { context, value } = tellTruth();
      if (!isNow()) return { context, value };
      const before = value.map((truth: unknown, i: number) => {
        if (keys[i] === CLOCK_SYSVAR) return earlierClock(truth, behind * SLOT_SECONDS);
        return keys[i] === RENT_SYSVAR ? truth : null;
      });
      return { context: { slot: context.slot - behind }, value: before };
    },
    getSlot: (tellTruth) => tellTruth() - (isNow() ? behind : 0),
  });
};

it("a node behind a balancer that is 700 slots behind, and answers one call in five, hides nothing", async () => {
  await start({ withHonest: false });
  let calls = 0;
  behindBy(700, () => calls++ % 5 === 0);
  // The first answer of a process is that of its checks at the start.
  await world.gateway.start();
  const vaults = [];
  for (let i = 0; i < 20; i++) vaults.push(await vaultOf("creator"));
  expect(vaults).toEqual(Array(20).fill("3.1000"));
});

it("a preferred endpoint that is 1,200 slots behind is not used, and the other one is when it dies", async () => {
  await start({ withHonest: true });
  behindBy(1_200);
  await world.gateway.start();
  expect(await vaultOf("creator")).toBe("3.1000");
  first.faults.add({ then: "reset" });
  expect(await vaultOf("artist001")).not.toBe("0.0000");
  expect(await vaultOf("creator")).toBe("3.1000");
});

it("a preferred endpoint that has stood still since before a collect is not trusted again later", async () => {
  await start({ withHonest: true });
  await world.gateway.start();
  const { chain } = world.sandbox;
  const { creatorVault, ammVault, address } = world.account("creator");
  const before = new Map(
    [creatorVault, ammVault, address].map((each) => [each, chain.account(each)]),
  );
  const context = { slot: chain.slot("finalized") };
  first.lie({
    getMultipleAccounts(tellTruth, [keys, { dataSlice }]) {
      const value = tellTruth().value.map((truth: unknown, i: number) => {
        const old = before.get(keys[i]);
        return old === undefined ? truth : toAccountJson(old, dataSlice);
      });
      return { context, value };
    },
    getSlot: () => context.slot,
  });
  advance(100);
  expect((await collect("creator")).body).toMatchObject({ success: true, collected: "3.1000" });
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + 61_000);
  expect(await vaultOf("creator")).toBe("0.0000");
  expect((await collect("creator")).body.error).toBe("NOTHING_TO_COLLECT");
});

it("a status that is 400 slots too high once does not stop lookups, nor collects", async () => {
  await start({ withHonest: false, env: { RPC_TIMEOUT_MS: "5000" } });
  await world.gateway.start();
  let isOver = false;
  first.lie({
    // The status tells first that it landed.
    getTransaction: (tellTruth) => (isOver ? tellTruth() : null),
    getSignatureStatuses(tellTruth) {
      const { context, value } = tellTruth();
      const [status] = value;
      if (isOver || status?.confirmationStatus !== "finalized") return { context, value };
      isOver = true;
      const slot = Number(context.slot) + 400;
      return { context: { slot }, value: [{ ...status, slot }] };
    },
  });
  expect((await collect("creator")).body).toMatchObject({ collected: "3.1000" });
  expect(isOver).toBe(true);
  expect(await vaultOf("creator")).toBe("0.0000");
  expect((await collect("artist001")).status).toBe(200);
  expect(await vaultOf("artist001")).toBe("0.0000");
});

describeWithRedis("with Redis", () => {
  it("an endpoint that is 8 s behind answers while another replica collects other accounts", async () => {
    const redis = await startRedis();
    await start({ withHonest: false, env: { REDIS_URL: redis.url, RPC_TIMEOUT_MS: "2000" } });
    await world.gateway.start();
    const { chain, feePayer } = world.sandbox;
    const behind = (tellTruth: () => any) => {
      const { context, value } = tellTruth();
      return { context: { slot: context.slot - 20 }, value };
    };
    first.lie({ getMultipleAccounts: behind });
    const channel = `tributary:v2:landed-slot:${feePayer}`;
    const announce = (handle: string) =>
      redis.command(
        "PUBLISH",
        channel,
        `${chain.slot("finalized")} ${world.account(handle).address}`,
      );
    await expect.poll(() => redis.command("PUBSUB", "NUMSUB", channel)).toEqual([channel, 1]);
    for (let i = 0; i < 5; i++) {
      await announce("artist001");
      expect(await vaultOf("creator")).toBe("3.1000");
    }
    // Its own collect is waited for.
    await announce("creator");
    expect((await world.lookup("creator")).body.error).toBe("LOOKUP_FAILED");
    expect(await vaultOf("artist002")).toBeDefined();
    first.stopLying();
    expect(await vaultOf("creator")).toBe("3.1000");
    await world.gateway.settled();
    clearInterval(slots);
    await redis.stop();
  });

  it("the slot of a collect that time does not explain, as after a rollback, stops no lookup and no collect", async () => {
    const redis = await startRedis();
    await start({ withHonest: true, env: { REDIS_URL: redis.url, RPC_TIMEOUT_MS: "5000" } });
    await world.gateway.start();
    const { chain, feePayer } = world.sandbox;
    const key = `tributary:v3:known:{${feePayer}:${world.account("creator").address}}`;
    await redis.command("HSET", key, "slot", chain.slot("finalized") + 1_000);
    expect(await vaultOf("creator")).toBe("3.1000");
    expect((await collect("creator")).body).toMatchObject({ success: true, collected: "3.1000" });
    expect(await vaultOf("creator")).toBe("0.0000");
    await world.gateway.settled();
    clearInterval(slots);
    await redis.stop();
  });
});

it("a balance never goes back, in a stream neither, when the preferred endpoint is 12 s behind", async () => {
  await start({ withHonest: true });
  await world.gateway.start();
  const { chain } = world.sandbox;
  const { creatorVault, id } = world.account("creator");
  const addOne = () => {
    advance(5);
    chain.setBalance(creatorVault, chain.balance(creatorVault) + 1_000_000_000n);
  };
  const query = `subscription { walletById(socialId: "${id}") { balance { vault } } }`;
  const stream = await openEventStream(world.url, { query });
  const shownInStream = () =>
    stream.events().map(({ data }) => data.walletById.balance.vault as string);
  await expect.poll(shownInStream).toEqual(["3.1000"]);
  addOne();
  await expect.poll(shownInStream).toEqual(["3.1000", "4.1000"]);
  const slot = chain.slot("finalized") - 30;
  first.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      const { value } = tellTruth();
      const before = value.map((truth: any, i: number) =>
        keys[i] === creatorVault
          ? { ...truth, lamports: Number(truth.lamports) - 1_000_000_000 }
          : truth,
      );
      return { context: { slot }, value: before };
    },
    getSlot: () => slot,
  });
  const vaults = [];
  for (let i = 0; i < 5; i++) vaults.push(await vaultOf("creator"));
  expect(vaults).toEqual(Array(5).fill("4.1000"));
  first.stopLying();
  addOne();
  await expect.poll(() => shownInStream().at(-1)).toBe("5.1000");
  expect(shownInStream()).toEqual(["3.1000", "4.1000", "5.1000"]);
  stream.close();
});
