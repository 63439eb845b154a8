import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AccountAddresses } from "../../../src/chain/launchpad/account-addresses.ts";
import type { BalanceWith } from "../../../src/chain/balances/balances.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import type { Caller } from "../../../src/fairness/caller.ts";
import { createBudgetMetrics } from "../../../src/fairness/budget-metrics.ts";
import { createChainCallPlan } from "../../../src/fairness/chain-call-plan.ts";
import { createLiveBalances } from "../../../src/chain/live/live-balances.ts";
import type { WalletWithCoins } from "../../../src/chain/balances/wallets.ts";
import { newMint } from "../../support/new-mint.ts";

/** Ends what a test watches. */
let stop: AbortController;
beforeEach(() => {
  stop = new AbortController();
  vi.useFakeTimers();
});
afterEach(() => {
  stop.abort();
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
  addressBlock = "192.0.2.0/24",
) {
  const vaults: number[] = [];
  void (async () => {
    const watcher = { signal: stop.signal, addressBlock };
    for await (const { balanceWith } of live.watch([wallet], watcher))
      vaults.push(Number(balanceWith([]).vault));
  })();
  return vaults;
}

/** Watches accounts, and collects what is shown of each. */
function watchAll(chain: Chain, addresses: readonly string[]) {
  const live = createLive(chain);
  return { live, shown: addresses.map((address) => watch(live, walletOf(address))) };
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
      const { shown } = watchAll(chain, names(count));
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
    },
  );

  it("reads a changed wallet before the others of its block, and never more often than the limit", async () => {
    const chain = createChain();
    const { live, shown } = watchAll(chain, names(1_000));
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
  });

  it("shows nothing during an outage, and then the current balance", async () => {
    const chain = createChain();
    const { shown } = watchAll(chain, names(20));
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
  });

  it("never shows an older read after a newer one", async () => {
    const chain = createChain(5_000);
    const { live, shown } = watchAll(chain, ["a"]);
    await vi.advanceTimersByTimeAsync(1_000);
    chain.vault = 4;
    // A second watcher's read starts later; the answers arrive in either order.
    const fast = vi
      .spyOn(chain, "getBalances")
      .mockImplementationOnce(() =>
        Promise.resolve([() => ({ vault: toLamports(4), pda: toLamports(0), coins: [] })]),
      );
    watch(live, walletOf("a"));
    await vi.advanceTimersByTimeAsync(20_000);
    expect(fast).toHaveBeenCalled();
    expect(shown).toEqual([[4]]);
  });

  it("gives a watcher who is slow only the newest balance", async () => {
    const chain = createChain();
    const live = createLive(chain);
    const watcher = live.watch([walletOf("a")], { signal: stop.signal, addressBlock: "" });
    for (let vault = 0; vault < 50; vault++) {
      chain.vault = vault;
      await vi.advanceTimersByTimeAsync(2_200);
    }
    expect((await watcher.next()).value!.balanceWith([])).toMatchObject({ vault: 49n });
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
      const changing = accountOf("changing");
      const others = [walletOf("account"), walletOf("account", 1), walletOf("changing")];
      const shown = others.map((wallet) => watch(live, wallet, block));
      await vi.advanceTimersByTimeAsync(MINUTE_MS);
      for (let attacker = 0; attacker < attackers; attacker++)
        for (let i = 0; i < 10; i++) {
          const coins = COINS.map((coin) => ({ ...coin, mint: newMint() }));
          watch(live, { account: changing, coins }, `attacker ${attacker}`);
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
    },
  );

  it("goes on, and repeats nothing, while others who watch the wallet are refused", async () => {
    const chain = createChain();
    const { live, shown } = watchAll(chain, ["a"]);
    await vi.advanceTimersByTimeAsync(200);
    const refused = vi.spyOn(chain, "getBalances");
    for (chain.vault = 1; chain.vault <= 2; chain.vault++)
      for (let ms = 0; ms < 6_000; ms += 1_000) {
        refused.mockResolvedValueOnce([new Error("refused")]);
        watch(live, walletOf("a"), "refused");
        await vi.advanceTimersByTimeAsync(1_000);
      }
    expect(shown).toEqual([[0, 1, 2]]);
  });

  it("stops when nobody watches", async () => {
    const chain = createChain();
    watchAll(chain, names(50));
    await vi.advanceTimersByTimeAsync(5_000);
    stop.abort();
    await vi.advanceTimersByTimeAsync(3_000);
    chain.reads.length = 0;
    await vi.advanceTimersByTimeAsync(10 * MINUTE_MS);
    expect(chain.reads).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
