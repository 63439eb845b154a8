import { PublicKey } from "@solana/web3.js";
import { beforeEach, describe, expect } from "vitest";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import type { Client } from "../support/client.ts";
import { newMint } from "../support/new-mint.ts";
import { replicas, withNewWorld, withReplicas, world } from "../support/fixtures.ts";
import type { TestSandbox } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;
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
function launchBelow({ coins }: TestSandbox, { address }: SandboxAccount) {
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
const BELOW = ["BELOW_SHARING_MINIMUM", "0.0000"];

describe("BELOW_SHARING_MINIMUM", () => {
  const it = withNewWorld({ RATE_LIMIT_MAX: "1000" });
  let account: SandboxAccount;
  let chain: World["sandbox"]["chain"];
  beforeEach(() => {
    ({ chain } = world.sandbox);
    account = emptyAccount(world.sandbox, "artist001");
  });
  const found = (mint: string) => shown(world, "artist001", mint);
  const collect = async (mint: string) => (await world.collect(account.id, {}, [mint])).body;

  it("ends with a collect after someone has paid the rent of the shareholder's address", async () => {
    const { mint, stranger } = launchBelow(world.sandbox, account);
    await collect(mint);
    expect(await found(mint)).toEqual(BELOW);
    chain.setBalance(stranger, SOL);
    expect(await collect(mint)).toMatchObject({ success: true, collected: "0.9999" });
    world.sandbox.coins.addFees(mint, SOL);
    expect(await found(mint)).toEqual([null, "0.9999"]);
  });

  it("ends when someone else has distributed the fees", async () => {
    const { mint, stranger } = launchBelow(world.sandbox, account);
    await collect(mint);
    expect(await found(mint)).toEqual(BELOW);
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

const it = withReplicas();

describe("what one replica learns of a coin", () => {
  const shownAt = (i: number, handle: string, mint: string) => shown(replicas.at(i), handle, mint);

  it("the other shows too: that the fees are below the minimum, and that they no longer are", async () => {
    const account = emptyAccount(replicas.sandbox, "artist002");
    const { mint, stranger } = launchBelow(replicas.sandbox, account);
    await replicas.at(0).collect(account.id, {}, [mint]);
    expect(await shownAt(0, "artist002", mint)).toEqual(BELOW);
    await expect.poll(() => shownAt(1, "artist002", mint), { timeout: 60_000 }).toEqual(BELOW);
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
    const { mint } = launchBelow(replicas.sandbox, account);
    await replicas.at(0).collect(account.id, {}, [mint]);
    await expect.poll(() => shownAt(1, "artist003", mint), { timeout: 60_000 }).toEqual(BELOW);
    const reads = async () => {
      const text: string = await replicas.redis.command("INFO", "commandstats");
      const all = text.matchAll(/^cmdstat_(?:get|mget|hget|hmget|hgetall):calls=(\d+)/gm);
      return [...all].reduce((sum, [, calls]) => sum + Number(calls), 0);
    };
    /** How much a lookup reads, also for the rate limit and the account. */
    const readsFor = async (named: string) => {
      const before = await reads();
      await shownAt(1, "artist003", named);
      return (await reads()) - before;
    };
    const unknown = launchBelow(replicas.sandbox, account).mint;
    expect(await readsFor(mint)).toBe(await readsFor(unknown));
  });
});
