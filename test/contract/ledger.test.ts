import { expect } from "vitest";
import { createLedger, type Collected } from "../../examples/ledger.ts";
import { newMint } from "../support/new-mint.ts";
import { chain, withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ RATE_LIMIT_MAX: "1000000" });

interface Entry {
  readonly socialId: string;
  readonly mints?: readonly string[];
}

const COLLECT_MANY = `mutation ($collects: [CollectInput!]!) {
  collectMany(collects: $collects) {
    txSignature collectedLamports lastCollect { txSignature collectedLamports }
  }
}`;
type Result = Collected & { readonly lastCollect: Collected | null };

/** A bot that counts with the ledger of the examples. */
function createBot() {
  const ledger = createLedger();

  async function collectMany(entries: readonly Entry[], { isLost = false } = {}): Promise<void> {
    const { body } = await world.graphql(COLLECT_MANY, { collects: entries });
    expect(body.errors).toBeUndefined();
    if (isLost) return;
    const results = (body.data.collectMany as Result[]).entries().toArray();
    // In any order: the entry with the amount may come last.
    for (const [i, result] of results.reverse())
      ledger.record(entries[i]!.socialId, result.lastCollect ?? result);
  }

  return { collectMany, total: ledger.total };
}

/** What all collects together have moved to these addresses. */
function movedTo(addresses: readonly string[]): bigint {
  let sum = 0n;
  for (const { message, preBalances, postBalances } of world.sandbox.landedCollects())
    message.accountKeys.forEach((key, i) => {
      if (addresses.includes(key)) sum += postBalances[i]! - preBalances[i]!;
    });
  return sum;
}

it("a bot that counts each account's part of a transaction once has the chain's total", async () => {
  const { coins } = world.sandbox;
  const accounts = Array.from({ length: 20 }, (_, i) => world.account(`artist0${i + 10}`));
  const addresses = accounts.map(({ address }) => address);
  const entries = accounts.map(({ id }) => ({ socialId: id }));
  const addFees = (lamports: bigint) => {
    for (const { creatorVault } of accounts)
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + lamports);
  };
  const bot = createBot();

  // Repeated entries.
  await bot.collectMany([...entries, ...entries.slice(0, 10)]);
  expect(bot.total()).toBe(movedTo(addresses));

  // Requests that join each other's transactions.
  addFees(500_000_000n);
  await Promise.all([bot.collectMany(entries), bot.collectMany(entries.toReversed())]);
  expect(bot.total()).toBe(movedTo(addresses));
  expect(world.sandbox.landedCollects().length).toBeLessThan(2 * accounts.length);

  // A lost response, and retries.
  addFees(700_000_000n);
  await bot.collectMany(entries, { isLost: true });
  expect(bot.total()).toBeLessThan(movedTo(addresses));
  await bot.collectMany(entries);
  expect(bot.total()).toBe(movedTo(addresses));

  // A coin whose fees some of the accounts share, after what is in their own vaults.
  addFees(300_000_001n);
  const mint = newMint();
  const shareholders = addresses.slice(0, 10).map((address) => ({ address, bps: 1_000 }));
  coins.launch({ mint, creator: addresses[0]!, shareholders, fees: 10n ** 9n });
  const before = movedTo(addresses);
  const named = accounts.slice(0, 10).map(({ id }) => ({ socialId: id, mints: [mint] }));
  await bot.collectMany([...entries.slice(10), ...named]);
  await bot.collectMany(named);
  expect(movedTo(addresses) - before).toBe(20n * 300_000_001n + 10n ** 9n);
  expect(bot.total()).toBe(movedTo(addresses));
});
