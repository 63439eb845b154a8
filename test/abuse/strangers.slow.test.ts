import { setImmediate } from "node:timers/promises";
import { PublicKey } from "@solana/web3.js";
import { Registry } from "@prometheus-io/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AccountAddresses } from "../../src/chain/launchpad/account-addresses.ts";
import { createHistory } from "../../src/chain/history/history.ts";
import { coinAddressesOf, type CoinAddresses } from "../../src/chain/launchpad/coin-addresses.ts";
import { createRpc } from "../../src/chain/rpc/rpc-client.ts";
import { NoRoomError } from "../../src/chain/errors/no-room-error.ts";
import { createFloors } from "../../src/chain/balances/floors.ts";
import { readPrice } from "../../src/chain/units/priority-fee.ts";
import { createReadWallets } from "../../src/chain/balances/wallets.ts";
import { createBudgetMetrics } from "../../src/fairness/budget-metrics.ts";
import { createChainCallPlan } from "../../src/fairness/chain-call-plan.ts";
import { createLogger } from "../../src/observability/log.ts";
import { createMeteredChain } from "../support/doubles/metered-chain.ts";

const CALLS_PER_SECOND = 55;
/** The addresses of an IPv4 /24, each with 20 requests a minute. */
const REQUESTS_PER_SECOND = (256 * 20) / 60;
const STEP_MS = 20;
const SECONDS = 5;
const COINS = Array.from({ length: 200 }, (_, i) =>
  coinAddressesOf(new PublicKey(1_000_000 + i).toBase58()),
);
const CURSOR = "5".repeat(88);

/** More than can wait at once. */
const ACCOUNTS = Array.from({ length: 4_000 }, (_, i): AccountAddresses => {
  const [address, creatorVault, vaultTokens, ammVaultAuthority, ammVault] = Array.from(
    { length: 5 },
    (_, key) => new PublicKey(5 * i + key + 1).toBase58(),
  ) as [string, string, string, string, string];
  return { address, creatorVault, vaultTokens, ammVaultAuthority, ammVault };
});
let asked = 0;
/** An account that nobody waits for. */
const newAccount = () => ACCOUNTS[asked++ % ACCOUNTS.length]!;

/** The service's reads of the chain, with the default plan. */
function createSimulation() {
  const chain = createMeteredChain();
  const log = createLogger("silent");
  const chainCallPlan = createChainCallPlan({
    callsPerSecond: CALLS_PER_SECOND,
    replicas: () => 1,
    refuse: (shortage) => new NoRoomError(shortage),
    metrics: createBudgetMetrics(new Registry()),
  });
  const { callUpstream } = chain;
  const urls = [new URL("http://chain")];
  const rpc = createRpc({ urls, rpcTimeoutMs: 5_000, callUpstream, chainCallPlan, log });
  const floors = createFloors({ feePayer: "payer", redis: undefined });
  const readWallets = createReadWallets({ rpc, floors, chainCallPlan });
  const { readPage } = createHistory({ rpc, floors, ownCalls: chainCallPlan.own });
  const toCaller = (addressBlock: string) => ({
    addressBlock,
    signal: new AbortController().signal,
  });

  async function lookUp(block: string, coins: readonly CoinAddresses[] = []) {
    const [state] = await readWallets([{ account: newAccount(), coins }], toCaller(block));
    if (state instanceof Error) throw state;
  }

  /**
   * The calls of a collect: reads, `simulations`, and then those that send a transaction and learn
   * its outcome.
   */
  async function collect(block: string, simulations: number): Promise<void> {
    const owner = { use: "collects", parts: new Map([[block, 1]]) } as const;
    const run = async () => {
      const [state] = await readWallets([{ account: newAccount(), coins: [] }]);
      if (state instanceof Error) throw state;
      for (let i = 0; i < simulations; i++)
        await rpc.simulateTransaction("", { addresses: [], minSlot: 0 });
      await readPrice(rpc, []);
      for (let i = 0; i < 2; i++) {
        await rpc.sendTransaction("");
        await rpc.findLanded(["a"]);
      }
    };
    await chainCallPlan.own(owner, run, 10);
  }

  const attacks = {
    lookups: (block: string) => lookUp(block),
    coins: (block: string) => lookUp(block, COINS.slice(asked % 190, (asked % 190) + 10)),
    collects: (block: string) => collect(block, 12),
    histories: (block: string) =>
      readPage(newAccount(), { first: 10, after: CURSOR }, toCaller(block)),
  };

  /** The longest wait of those that were served, and how many were refused. */
  function createWaits() {
    const waits = { longestMs: 0, served: 0, refused: 0 };
    const measure = async (run: Promise<unknown>) => {
      const startedAt = performance.now();
      try {
        await run;
        waits.served++;
        waits.longestMs = Math.max(waits.longestMs, performance.now() - startedAt);
      } catch {
        waits.refused++;
      }
    };
    return { waits, measure };
  }

  return { chain, lookUp, collect, attacks, createWaits };
}

/** The most calls in any second. */
function busiestSecond(callsAt: readonly number[]): number {
  let first = 0;
  let most = 0;
  callsAt.forEach((at, i) => {
    while (callsAt[first]! + 1_000 <= at) first++;
    most = Math.max(most, i - first + 1);
  });
  return most;
}

async function passTime(ms: number): Promise<void> {
  await setImmediate();
  await vi.advanceTimersByTimeAsync(ms);
  await setImmediate();
}

beforeEach(() => {
  const toFake = ["setTimeout", "clearTimeout", "Date", "performance"] as const;
  vi.useFakeTimers({ toFake: [...toFake] });
  vi.advanceTimersByTime(1);
});
afterEach(() => {
  vi.useRealTimers();
});

describe("strangers at their limits", () => {
  const uses = ["lookups", "coins", "collects", "histories"] as const;
  const cases = [...uses.map((use) => ({ blocks: 50, use })), { blocks: 1, use: uses[2] }];

  it.each(cases)(
    "from $blocks blocks on $use leave an honest lookup 2 s, a collect 3 s, and the plan its calls",
    async ({ blocks, use }) => {
      const { chain, lookUp, collect, attacks, createWaits } = createSimulation();
      const [lookups, collects, strangers] = [createWaits(), createWaits(), createWaits()];
      let due = 0;
      let sent = 0;
      for (let ms = 0; ms < SECONDS * 1_000; ms += STEP_MS) {
        for (due += (blocks * REQUESTS_PER_SECOND * STEP_MS) / 1_000; sent < due; sent++)
          void strangers.measure(attacks[use](`192.0.${sent % blocks}.0/24`));
        if (ms % 500 === 0) {
          const block = `198.51.${ms / 500}.0/24`;
          void lookups.measure(lookUp(block));
          void collects.measure(collect(block, 1));
        }
        await passTime(STEP_MS);
      }
      for (let i = 0; i < 3_000 / STEP_MS; i++) await passTime(STEP_MS);
      expect(lookups.waits).toMatchObject({ served: 2 * SECONDS, refused: 0 });
      expect(collects.waits).toMatchObject({ served: 2 * SECONDS, refused: 0 });
      expect(lookups.waits.longestMs).toBeLessThan(2_000);
      expect(collects.waits.longestMs).toBeLessThan(3_000);
      expect(busiestSecond(chain.callsAt)).toBeLessThanOrEqual(CALLS_PER_SECOND);
    },
  );
});
