import { Counter, Gauge, type Registry } from "@prometheus-io/client";
import type { Warnings } from "../../observability/warnings.ts";
import { memoize } from "../../store/memoize.ts";
import { formatSol, type Lamports } from "../primitives/lamports.ts";
import { BASE_FEE_LAMPORTS } from "../units/priority-fee.ts";

const BALANCE_MAX_AGE_MS = 10_000;
/** The log warns the operator when the fee payer can pay for fewer collects than this. */
const FEW_COLLECTS = 100n;

/** Tests pass shorter waits. The defaults are for production. */
export interface MetricsWaits {
  /** Reads of the fee payer's balance within this time share one call. */
  readonly balanceMaxAgeMs?: number | undefined;
}

const RESULTS = [
  "collected",
  "nothing",
  "refused",
  "INSUFFICIENT_FUNDS",
  "COLLECT_FAILED",
] as const;

export type CollectMetrics = ReturnType<typeof createCollectMetrics>;

/**
 * Creates the metrics of collects and of the fee payer. Warns when the fee payer can pay for few
 * collects.
 */
export function createCollectMetrics(
  needs: MetricsWaits & {
    registry: Registry;
    warnings: Warnings;
    /** In base58. */
    feePayer: string;
    maxPriorityFeeLamports: Lamports;
    readBalance: () => Promise<Lamports>;
  },
) {
  const { warnings, feePayer, balanceMaxAgeMs = BALANCE_MAX_AGE_MS } = needs;
  const registers = [needs.registry];
  const collects = new Counter({
    name: "tributary_collects_total",
    help: "Collects that ended, counted once for all callers who shared them. result: collected, nothing, refused (the fee budget is used up), or the code of the error.",
    labelNames: ["result"],
    registers,
  });
  // Start at zero, so that the first failure shows as an increase.
  for (const result of RESULTS) collects.inc({ result }, 0);
  const collectedTotal = new Counter({
    name: "tributary_collected_lamports_total",
    help: "Lamports that transactions signed by this replica moved to accounts' addresses.",
    registers,
  });
  const fees = new Counter({
    name: "tributary_fees_spent_lamports_total",
    help: "Lamports that the fee payer paid for landed transactions signed by this replica.",
    registers,
  });
  const differences = new Counter({
    name: "tributary_platform_differences_total",
    help: "Landed collects, signed by this replica, that moved something else than the launch platform's tested programs would.",
    registers,
  });
  const getBalance = memoize(needs.readBalance, balanceMaxAgeMs);
  const balance = new Gauge({
    name: "tributary_fee_payer_lamports",
    help: "The fee payer's balance when it was last read, at start, at the previous scrape or after a collect; absent until the first read.",
    registers,
    // Do not await: a slow chain must not delay the other metrics.
    collect: refreshBalance,
  });
  // A gauge without labels starts at 0, which looks like an empty fee payer.
  balance.remove();

  function refreshBalance(): void {
    getBalance().then(setBalance, () => undefined);
  }

  let newestBalance: Lamports | undefined;
  function setBalance(lamports: Lamports): void {
    newestBalance = lamports;
    balance.set(Number(lamports));
    const { isEnough, text } = describeBalance(feePayer, lamports, needs);
    if (!isEnough) warnings.raise("fee payer", `${text}: fund it`);
    else warnings.clear("fee payer", text);
  }

  return {
    ended(result: (typeof RESULTS)[number]): void {
      collects.inc({ result });
      if (result === "INSUFFICIENT_FUNDS") {
        warnings.raise("fee payer", `the fee payer ${feePayer} cannot pay for a collect: fund it`);
      }
    },
    collected(lamports: Lamports): void {
      collectedTotal.inc(Number(lamports));
    },
    paid(fee: Lamports): void {
      fees.inc(Number(fee));
    },
    differed(): void {
      differences.inc();
    },
    setBalance,
    /** For the operator: the fee payer, and its balance when it was last read. */
    describe() {
      refreshBalance();
      return { address: feePayer, lamports: newestBalance?.toString() };
    },
  };
}

/**
 * Returns how many collects a fee payer (base58) can pay for, whether that is enough, and a text
 * for the log.
 */
export function describeBalance(
  feePayer: string,
  lamports: Lamports,
  { maxPriorityFeeLamports }: { maxPriorityFeeLamports: Lamports },
) {
  const collects = lamports / (BASE_FEE_LAMPORTS + maxPriorityFeeLamports);
  const text = `the fee payer ${feePayer} holds ${formatSol(lamports)} SOL, enough for ${collects} collects at the highest fee`;
  return { collects, isEnough: collects >= FEW_COLLECTS, text };
}
