import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AccountAddresses } from "../../../src/chain/launchpad/account-addresses.ts";
import type { BalanceWith } from "../../../src/chain/balances/balances.ts";
import type { CoinFees } from "../../../src/chain/launchpad/coin-fees.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import type { Caller } from "../../../src/fairness/caller.ts";
import { createBudgetMetrics } from "../../../src/fairness/budget-metrics.ts";
import { createChainCallPlan } from "../../../src/fairness/chain-call-plan.ts";
import { createLiveBalances } from "../../../src/chain/live/live-balances.ts";
import type { WalletWithCoins } from "../../../src/chain/balances/wallets.ts";
import { newMint } from "../../support/new-mint.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const MINUTE_MS = 60_000;
const CALLS_PER_SECOND = 55;
/** The calls of streams in a minute: a thirty-second of the plan. */
const MOST_PER_MINUTE = (60 * CALLS_PER_SECOND) / 32;
const accountOf = (address: string): AccountAddresses => ({
  ...{ address, creatorVault: "", vaultTokens: "", ammVaultAuthority: "", ammVault: "" },
});

const COINS = Array.from({ length: 19 }, () => coinAddressesOf(newMint()));
const walletOf = (address: string, coins = 0): WalletWithCoins => ({
  account: accountOf(address),
  coins: COINS.slice(0, coins),
});

/** Balances that take `latencyMs` to read by a number of calls, and the calls that were made. */
function createChain(latencyMs = 100) {
  const chain = {
    vault: 0,
    isDown: false,
    callsPerRead: 1,
    reads: [] as { readonly at: number; readonly addresses: readonly string[] }[],
    plan: createChainCallPlan({
      callsPerSecond: CALLS_PER_SECOND,
      replicas: () => 1,
      refuse: () => new Error("refused"),
      metrics: createBudgetMetrics(new Registry()),
    }),
    async getBalances(
      wallets: readonly WalletWithCoins[],
      watcher?: Caller,
    ): Promise<(BalanceWith | Error)[]> {
      const addresses = wallets.map(({ account }) => account.address);
      for (let call = 0; call < chain.callsPerRead; call++) {
        chain.plan.count();
        chain.reads.push({ at: performance.now(), addresses });
      }
      const { vault } = chain;
      await new Promise((resolve) => setTimeout(resolve, latencyMs));
      return wallets.map(() =>
        chain.isDown || watcher?.signal.aborted
          ? new Error("down, or nobody waits")
          : () => ({ vault: toLamports(vault), pda: toLamports(0), coins: [] }),
      );
    },
  };
  return chain;
}

type Chain = ReturnType<typeof createChain>;
const createLive = (chain: Chain) =>
  createLiveBalances({ balances: chain, batches: chain.plan.batchesOf("streams") });

/** Watches a wallet for a block, and collects what is shown of it. */
function watch(
  live: ReturnType<typeof createLive>,
  wallet: WalletWithCoins,
  { signal }: AbortController,
  addressBlock = "192.0.2.0/24",
) {
  const vaults: number[] = [];
  void (async () => {
    for await (const { balanceWith } of live.watch([wallet], { signal, addressBlock }))
      vaults.push(Number(balanceWith([]).vault));
  })();
  return vaults;
}

/** Watches accounts, and collects what is shown of each. */
function watchAll(chain: Chain, addresses: readonly string[]) {
  const live = createLive(chain);
  const stop = new AbortController();
  const shown = addresses.map((address) => watch(live, walletOf(address), stop));
  return { live, shown, stop };
}
const names = (count: number) => Array.from({ length: count }, (_, i) => `account${i}`);

/** The most calls in any minute. */
const busiestMinute = (reads: readonly { readonly at: number }[]) =>
  Math.max(
    ...reads.map(
      ({ at }) => reads.filter((read) => read.at >= at && read.at < at + MINUTE_MS).length,
    ),
  );

describe("watching", () => {
  it.each([
    [1, 30],
    [1_000, 77],
  ])(
    "%i wallets makes at most the calls of its share in any minute, %i in most",
    async (count, usual) => {
      const chain = createChain();
      const { shown, stop } = watchAll(chain, names(count));
      await vi.advanceTimersByTimeAsync(200);
      expect(shown.every((vaults) => vaults.length === 1)).toBe(true);
      // The first reads are like those of a lookup.
      chain.reads.length = 0;
      await vi.advanceTimersByTimeAsync(4 * MINUTE_MS);
      expect(busiestMinute(chain.reads)).toBeLessThanOrEqual(MOST_PER_MINUTE);
      const perMinute = chain.reads.length / 4;
      expect(Math.abs(perMinute - usual)).toBeLessThan(3);
      chain.vault = 7;
      const periodMs = Math.max(2_000, Math.ceil(count / 32) * 780);
      await vi.advanceTimersByTimeAsync(periodMs + 1_500);
      expect(shown.every((vaults) => vaults.join() === "0,7")).toBe(true);
      stop.abort();
    },
  );

  it("one wallet by many costs as much as by one", async () => {
    const chain = createChain();
    const { shown, stop } = watchAll(chain, Array<string>(50).fill("same"));
    await vi.advanceTimersByTimeAsync(200);
    chain.reads.length = 0;
    chain.vault = 3;
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(chain.reads.length).toBeLessThanOrEqual(30);
    expect(shown.every((vaults) => vaults.join() === "0,3")).toBe(true);
    stop.abort();
  });

  it("reads a changed wallet before the others of its block, and never more often than the limit", async () => {
    const chain = createChain();
    const { live, shown, stop } = watchAll(chain, names(1_000));
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    chain.reads.length = 0;
    chain.vault = 9;
    live.refresh(accountOf("account999"));
    await vi.advanceTimersByTimeAsync(2_600);
    expect(shown[999]).toEqual([0, 9]);
    for (let i = 0; i < 3_000; i++) {
      live.refresh(accountOf(`account${i % 1_000}`));
      await vi.advanceTimersByTimeAsync(20);
    }
    expect(busiestMinute(chain.reads)).toBeLessThanOrEqual(MOST_PER_MINUTE);
    stop.abort();
  });

  it("shows nothing during an outage, and then the current balance", async () => {
    const chain = createChain();
    const { shown, stop } = watchAll(chain, names(20));
    await vi.advanceTimersByTimeAsync(3_000);
    chain.isDown = true;
    chain.vault = 5;
    await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
    expect(shown.every((vaults) => vaults.join() === "0")).toBe(true);
    chain.isDown = false;
    await vi.advanceTimersByTimeAsync(2_500);
    expect(shown.every((vaults) => vaults.join() === "0,5")).toBe(true);
    // Also if it is the same as before: callers could not know that.
    chain.isDown = true;
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    chain.isDown = false;
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(shown.every((vaults) => vaults.join() === "0,5,5")).toBe(true);
    stop.abort();
  });

  it("that begins during an outage shows the balance after it", async () => {
    const chain = createChain();
    chain.isDown = true;
    const { shown, stop } = watchAll(chain, ["a"]);
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    expect(shown).toEqual([[]]);
    chain.isDown = false;
    await vi.advanceTimersByTimeAsync(16_000);
    expect(shown).toEqual([[0]]);
    stop.abort();
  });

  it("never shows an older read after a newer one", async () => {
    const chain = createChain(5_000);
    const { live, shown, stop } = watchAll(chain, ["a"]);
    await vi.advanceTimersByTimeAsync(1_000);
    chain.vault = 4;
    // A second watcher's read starts later; the answers arrive in either order.
    const fast = vi
      .spyOn(chain, "getBalances")
      .mockImplementationOnce(() =>
        Promise.resolve([() => ({ vault: toLamports(4), pda: toLamports(0), coins: [] })]),
      );
    watch(live, walletOf("a"), stop);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(fast).toHaveBeenCalled();
    expect(shown).toEqual([[4]]);
    stop.abort();
  });

  it("shows a balance when a coin gains, loses or changes a place where fees wait", async () => {
    const chain = createChain();
    const zero = toLamports(0);
    const place = { mint: "mint", quoteMint: null, amount: 5n, shareBps: 10_000, reason: null };
    const curve: CoinFees = { ...place, stage: "CURVE" };
    const pool: CoinFees = { ...place, stage: "POOL" };
    let coins = [curve];
    vi.spyOn(chain, "getBalances").mockImplementation(() =>
      Promise.resolve([((coins) => () => ({ vault: zero, pda: zero, coins }))(coins)]),
    );
    const stop = new AbortController();
    const shown: (string | null)[][] = [];
    void (async () => {
      const watcher = { signal: stop.signal, addressBlock: "" };
      for await (const { balanceWith } of createLive(chain).watch([walletOf("a")], watcher))
        shown.push(balanceWith([]).coins.map(({ stage }) => stage));
    })();
    await vi.advanceTimersByTimeAsync(5_000);
    for (coins of [[curve, pool], [pool], [curve]]) await vi.advanceTimersByTimeAsync(5_000);
    expect(shown).toEqual([["CURVE"], ["CURVE", "POOL"], ["POOL"], ["CURVE"]]);
    stop.abort();
  });

  it("gives a watcher who is slow only the newest balance", async () => {
    const chain = createChain();
    const live = createLive(chain);
    const stop = new AbortController();
    const watcher = live.watch([walletOf("a")], { signal: stop.signal, addressBlock: "" });
    for (let vault = 0; vault < 50; vault++) {
      chain.vault = vault;
      await vi.advanceTimersByTimeAsync(2_200);
    }
    expect((await watcher.next()).value!.balanceWith([])).toMatchObject({ vault: 49n });
    stop.abort();
  });

  it("reads in turns of address blocks, so that many streams of one do not delay the others", async () => {
    const chain = createChain();
    const live = createLive(chain);
    const stop = new AbortController();
    const many = names(125).map((name) => watch(live, walletOf(name, 19), stop, "many"));
    // One of them is also watched by a block with few streams.
    const others = [
      walletOf("account60", 19),
      ...names(20).map((name) => walletOf(`other ${name}`)),
    ].map((wallet, i) => watch(live, wallet, stop, `other ${i}`));
    await vi.advanceTimersByTimeAsync(MINUTE_MS);
    for (let vault = 1; vault <= 10; vault++) {
      chain.vault = vault;
      await vi.advanceTimersByTimeAsync(8_000);
      expect(others.map((vaults) => vaults.at(-1))).toEqual(others.map(() => vault));
    }
    // The many get the rest of the calls.
    await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
    expect(many.map((vaults) => vaults.at(-1))).toEqual(many.map(() => 10));
    stop.abort();
  });

  it.each([
    // At first, until each has used as much as the watcher has used alone.
    { watcher: "another block", block: "other", attackers: 1, atFirst: 12, most: 3 },
    { watcher: "another block", block: "other", attackers: 8, atFirst: 45, most: 10 },
    // Each wallet of the attackers is read twice: because it has changed, and in its turn.
    { watcher: "the same block", block: "attacker 0", attackers: 1, atFirst: 23, most: 23 },
  ])(
    "shows $watcher a change within $most calls while $attackers blocks watch ten wallets each that change all the time",
    async ({ block, attackers, atFirst, most }) => {
      const chain = createChain();
      const live = createLive(chain);
      const stop = new AbortController();
      const changing = accountOf("changing");
      const others = [walletOf("account"), walletOf("account", 1), walletOf("changing")];
      const shown = others.map((wallet) => watch(live, wallet, stop, block));
      await vi.advanceTimersByTimeAsync(MINUTE_MS);
      for (let attacker = 0; attacker < attackers; attacker++)
        for (let i = 0; i < 10; i++) {
          const coins = COINS.map((coin) => ({ ...coin, mint: newMint() }));
          watch(live, { account: changing, coins }, stop, `attacker ${attacker}`);
        }
      for (let vault = 1; vault <= 10; vault++) {
        chain.vault = vault;
        chain.reads.length = 0;
        const bound = vault === 1 ? atFirst : most;
        while (shown.some((vaults) => vaults.at(-1) !== vault) && chain.reads.length <= bound) {
          live.refresh(changing);
          await vi.advanceTimersByTimeAsync(100);
        }
        expect(chain.reads.length).toBeLessThanOrEqual(bound);
      }
      stop.abort();
    },
  );

  it("goes on, and repeats nothing, while others begin to watch the wallet and leave at once, or are refused", async () => {
    const chain = createChain();
    const { live, shown, stop } = watchAll(chain, ["a"]);
    await vi.advanceTimersByTimeAsync(200);
    const refused = vi.spyOn(chain, "getBalances");
    for (let vault = 1; vault <= 5; vault++) {
      chain.vault = vault;
      for (let ms = 0; ms < 6_000; ms += 1_000) {
        const leaver = new AbortController();
        watch(live, walletOf("a"), leaver, "leaver");
        leaver.abort();
        refused.mockResolvedValueOnce([new Error("refused")]);
        watch(live, walletOf("a"), stop, "refused");
        await vi.advanceTimersByTimeAsync(1_000);
      }
    }
    expect(shown).toEqual([[0, 1, 2, 3, 4, 5]]);
    stop.abort();
  });

  it("stops when nobody watches", async () => {
    const chain = createChain();
    const { stop } = watchAll(chain, names(50));
    await vi.advanceTimersByTimeAsync(5_000);
    stop.abort();
    await vi.advanceTimersByTimeAsync(3_000);
    chain.reads.length = 0;
    await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
    expect(chain.reads).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
