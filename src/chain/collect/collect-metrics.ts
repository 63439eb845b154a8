import { Counter, Gauge, type Registry } from "@prometheus-io/client";
import { memoize } from "../../upstream/memoize.ts";
import type { Lamports } from "../lamports.ts";

/** All scrapes within this time share one read of the fee payer's balance. */
const BALANCE_MAX_AGE_MS = 10_000;

const RESULTS = ["collected", "nothing", "INSUFFICIENT_FUNDS", "COLLECT_FAILED"];

export type CollectMetrics = ReturnType<typeof createCollectMetrics>;

/** Metrics of collects and of the fee payer, whose balance `readBalance` reads. */
export function createCollectMetrics(registry: Registry, readBalance: () => Promise<Lamports>) {
  const registers = [registry];
  const collects = new Counter({
    name: "tributary_collects_total",
    help: "Collects that ended, counted once for all callers who shared them. result: collected, nothing, or the code of the error.",
    labelNames: ["result"],
    registers,
  });
  // Start at zero, so that the first failure shows as an increase.
  for (const result of RESULTS) collects.inc({ result }, 0);
  const collected = new Counter({
    name: "tributary_collected_lamports_total",
    help: "Lamports that transactions signed by this replica moved to accounts' addresses.",
    registers,
  });
  const fees = new Counter({
    name: "tributary_fees_spent_lamports_total",
    help: "Lamports that the fee payer paid for landed transactions signed by this replica.",
    registers,
  });
  const getBalance = memoize(readBalance, BALANCE_MAX_AGE_MS);
  let isKnown = false;
  const balance = new Gauge({
    name: "tributary_fee_payer_lamports",
    help: "The fee payer's balance when it was last read, at the previous scrape or after a collect; NaN until the first read.",
    registers,
    collect() {
      if (!isKnown) this.set(NaN);
      // Do not await: a slow chain must not delay the other metrics.
      getBalance().then(setBalance, () => undefined);
    },
  });

  function setBalance(lamports: Lamports): void {
    isKnown = true;
    balance.set(Number(lamports));
  }

  return {
    /** `result`: `collected`, `nothing` or the code of the error. */
    ended(result: string): void {
      collects.inc({ result });
    },
    collected(lamports: Lamports): void {
      collected.inc(Number(lamports));
    },
    paid(fee: Lamports): void {
      fees.inc(Number(fee));
    },
    setBalance,
  };
}
