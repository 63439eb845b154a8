import { PublicKey } from "@solana/web3.js";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import type { Client } from "../support/client.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { newMint } from "../support/new-mint.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startReplicas, type Replicas } from "../support/replicas.ts";
import { isMethod, onNext, type TestSandbox } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

const SOL = 1_000_000_000n;
/** Longer than a failed simulation is remembered. */
const FORGOTTEN_MS = 11_000;
/** The stranger's share, in ten-thousandths. Of 1 SOL it is less than an account's rent. */
const BPS = 1;

/** An account without fees of its own, which can receive any amount. */
function emptyAccount({ account, chain }: TestSandbox, handle: string): SandboxAccount {
  const found = account(handle);
  chain.setBalance(found.creatorVault, chain.rentExemptMinimum(0));
  chain.setBalance(found.address, SOL);
  return found;
}
/** A coin on which 1 SOL waits for an account, and for an address that does not exist yet. */
function launchBlocked({ coins }: TestSandbox, { address }: SandboxAccount) {
  const [mint, stranger] = [newMint(), PublicKey.unique().toBase58()];
  const shareholders = [
    { address, bps: 10_000 - BPS },
    { address: stranger, bps: BPS },
  ];
  coins.launch({ mint, creator: STRANGER, kind: "shared", shareholders, fees: SOL });
  return { mint, stranger };
}
/** The reason in a lookup, and what its vault counts. */
async function shown(client: Pick<Client, "request">, handle: string, mint: string) {
  const { body } = await client.request(`/wallet/lookup?handle=${handle}&mint=${mint}`);
  return [body.coins[0].reason, body.balance.vault];
}
const BLOCKED = ["SHAREHOLDER_BLOCKED", "0.0000"];

describe("SHAREHOLDER_BLOCKED", () => {
  let world: World;
  let account: SandboxAccount;
  let chain: World["sandbox"]["chain"];
  beforeEach(async () => {
    world = await startWorld({ RATE_LIMIT_MAX: "1000" });
    ({ chain } = world.sandbox);
    account = emptyAccount(world.sandbox, "artist001");
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await world.close();
  });
  const found = (mint: string) => shown(world, "artist001", mint);
  const collect = async (mint: string) => (await world.collect(account.id, {}, [mint])).body;
  /** Makes this much more time pass. */
  function pass(ms: number): void {
    const now = performance.now.bind(performance);
    vi.spyOn(performance, "now").mockImplementation(() => now() + ms);
  }

  it("ends when the fees have grown so that the shareholder's part pays the rent of its address", async () => {
    const { mint } = launchBlocked(world.sandbox, account);
    expect((await collect(mint)).success).toBe(false);
    expect(await found(mint)).toEqual(BLOCKED);
    // Still less than the rent.
    world.sandbox.coins.addFees(mint, SOL);
    expect(await found(mint)).toEqual(BLOCKED);
    world.sandbox.coins.addFees(mint, 6n * SOL);
    expect(await found(mint)).toEqual([null, "7.9992"]);
    expect(await collect(mint)).toMatchObject({ success: true, collected: "7.9992" });
  });

  it("ends when the fees have grown so, also if its transaction failed on the chain", async () => {
    const { mint, stranger } = launchBlocked(world.sandbox, account);
    chain.setBalance(stranger, SOL);
    onNext(world.sandbox.rpc, isMethod("sendTransaction"), () => {
      chain.setBalance(stranger, 0n);
    });
    expect((await collect(mint)).success).toBe(false);
    expect(await found(mint)).toEqual(BLOCKED);
    world.sandbox.coins.addFees(mint, 7n * SOL);
    expect(await found(mint)).toEqual([null, "7.9992"]);
  });

  it("ends with a collect after someone has paid the rent of the shareholder's address", async () => {
    const { mint, stranger } = launchBlocked(world.sandbox, account);
    await collect(mint);
    expect(await found(mint)).toEqual(BLOCKED);
    chain.setBalance(stranger, SOL);
    pass(FORGOTTEN_MS);
    expect(await collect(mint)).toMatchObject({ success: true, collected: "0.9999" });
    world.sandbox.coins.addFees(mint, SOL);
    expect(await found(mint)).toEqual([null, "0.9999"]);
  });

  it("ends when someone else has distributed the fees", async () => {
    const { mint, stranger } = launchBlocked(world.sandbox, account);
    await collect(mint);
    expect(await found(mint)).toEqual(BLOCKED);
    // As another site's distribution would: it empties the curve, and pays all shareholders.
    chain.setBalance(stranger, SOL);
    world.sandbox.coins.launch({ mint, creator: STRANGER, kind: "shared", fees: 0n });
    const shareholders = [
      { address: account.address, bps: 10_000 - BPS },
      { address: stranger, bps: BPS },
    ];
    world.sandbox.coins.setSharing(mint, { shareholders });
    expect(await found(mint)).toEqual(["NOTHING_WAITING", "0.0000"]);
  });
});

describeWithRedis("what one replica learns of a coin", () => {
  let redis: RedisServer;
  let replicas: Replicas;
  beforeAll(async () => {
    redis = await startRedis();
    replicas = await startReplicas(redis.url);
  });
  afterAll(async () => {
    await replicas.close();
    await redis.stop();
  });
  const shownAt = (i: number, handle: string, mint: string) => shown(replicas.at(i), handle, mint);

  it("the other shows too: that a shareholder is blocked, and that it no longer is", async () => {
    const account = emptyAccount(replicas.sandbox, "artist002");
    const { mint, stranger } = launchBlocked(replicas.sandbox, account);
    await replicas.at(0).collect(account.id, {}, [mint]);
    expect(await shownAt(0, "artist002", mint)).toEqual(BLOCKED);
    await expect.poll(() => shownAt(1, "artist002", mint), { timeout: 60_000 }).toEqual(BLOCKED);
    replicas.sandbox.chain.setBalance(stranger, SOL);
    await expect
      .poll(async () => (await replicas.at(1).collect(account.id, {}, [mint])).body.success, {
        interval: 1_000,
      })
      .toBe(true);
    replicas.sandbox.coins.addFees(mint, SOL);
    for (const i of [1, 0])
      await expect.poll(() => shownAt(i, "artist002", mint)).toEqual([null, "0.9999"]);
  });

  it("needs no read of Redis in a lookup", async () => {
    const account = emptyAccount(replicas.sandbox, "artist003");
    const { mint } = launchBlocked(replicas.sandbox, account);
    await replicas.at(0).collect(account.id, {}, [mint]);
    await expect.poll(() => shownAt(1, "artist003", mint), { timeout: 60_000 }).toEqual(BLOCKED);
    const reads = async () => {
      const text: string = await redis.command("INFO", "commandstats");
      const all = text.matchAll(/^cmdstat_(?:get|mget|hget|hmget|hgetall):calls=(\d+)/gm);
      return [...all].reduce((sum, [, calls]) => sum + Number(calls), 0);
    };
    /** How much a lookup reads, also for the rate limit and the account. */
    const readsFor = async (named: string) => {
      const before = await reads();
      await shownAt(1, "artist003", named);
      return (await reads()) - before;
    };
    const unknown = launchBlocked(replicas.sandbox, account).mint;
    expect(await readsFor(mint)).toBe(await readsFor(unknown));
  });
});
