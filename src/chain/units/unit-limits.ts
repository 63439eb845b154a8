import { createLruCache } from "../../store/lru-cache.ts";
import { distributionsOf, sweepsOf, type Sweep } from "../launchpad/choose-sweeps.ts";
import type { CollectPart } from "./part.ts";
import { MAX_UNIT_LIMIT } from "./message.ts";

/**
 * The least compute units to request: for each instruction, and once for the spread between
 * transactions, because an instruction uses more units with some addresses. A simulation measures
 * too few if it sees an empty vault that fees reach later, or if the endpoint lies, and a
 * transaction that runs out of units costs its fee. On the sandbox a collect uses 5,000 to 14,000,
 * the AMM's transfer 30,000, a sweep of a curve 11,000 to 26,000, of a pool 13,000 to 23,000, a
 * distribution 14,000 to 30,000.
 */
const LEAST_UNITS = {
  collect: 10_000,
  amm: 50_000,
  CURVE: 28_000,
  POOL: 35_000,
  distribute: 25_000,
  payout: 2_500,
  spread: 15_000,
};
/**
 * How many more units are used if fees arrive after a simulation that saw none: by a pool's sweep,
 * and by each payout.
 */
const MORE_UNITS_OF_POOL = 25_000;
const MORE_UNITS_OF_PAYOUT = 2_000;
const UNIT_LIMIT_MARGIN = 1.2;

const MAX_KINDS = 1_000;

/**
 * Chooses compute-unit limits. Remembers the most compute units that landed transactions have used,
 * by how many instructions of each kind they have: an endpoint that reports too few in a simulation
 * must not make the next ones fail.
 */
export function createUnitLimits() {
  const usedUnits = createLruCache<string, number>(MAX_KINDS);

  return {
    /** Returns the limit of a transaction whose simulation used `measuredUnits`. */
    limitOf: (parts: readonly CollectPart[], measuredUnits: number): number =>
      unitLimitOf(parts, measuredUnits, usedUnits.get(kindOf(parts)) ?? 0),

    /** Records a landed transaction; ignores units above its limit, which no transaction uses. */
    landed(parts: readonly CollectPart[], units: number, unitLimit: number): void {
      const kind = kindOf(parts);
      if (units <= unitLimit && units > (usedUnits.get(kind) ?? 0)) usedUnits.set(kind, units);
    },
  };
}

/**
 * Returns the compute-unit limit of a transaction whose simulation used `measuredUnits`.
 * `usedBefore`: the most that a transaction with as many of the same instructions has used.
 */
function unitLimitOf(
  parts: readonly CollectPart[],
  measuredUnits: number,
  usedBefore: number,
): number {
  const sweeps = parts.flatMap((part) => part.sweeps);
  const pools = sweeps.filter((sweep) =>
    sweep.stage === "SHARED" ? sweep.withPool : sweep.stage === "POOL",
  );
  const payouts = distributionsOf(sweeps).flatMap(({ shareholders }) => shareholders);
  const more = MORE_UNITS_OF_POOL * pools.length + MORE_UNITS_OF_PAYOUT * payouts.length;
  const units = Math.max(
    Math.ceil(measuredUnits * UNIT_LIMIT_MARGIN),
    measuredUnits + more,
    leastUnitsOf(parts),
    usedBefore,
  );
  return Math.min(units, MAX_UNIT_LIMIT);
}

export function leastUnitsOf(parts: readonly CollectPart[]): number {
  return parts.reduce(
    (sum, { withAmm, sweeps }) =>
      sum +
      LEAST_UNITS.collect +
      (withAmm ? LEAST_UNITS.amm : 0) +
      sweeps.reduce((units, sweep) => units + leastUnitsOfSweep(sweep), 0),
    LEAST_UNITS.spread,
  );
}

function leastUnitsOfSweep(sweep: Sweep): number {
  if (sweep.stage !== "SHARED") return LEAST_UNITS[sweep.stage];
  return (
    (sweep.withCurve ? LEAST_UNITS.CURVE : 0) +
    (sweep.withPool ? LEAST_UNITS.POOL + LEAST_UNITS.amm : 0) +
    LEAST_UNITS.distribute +
    LEAST_UNITS.payout * sweep.shareholders.length
  );
}

/** Two transactions of one kind have as many instructions of each kind. */
function kindOf(parts: readonly CollectPart[]): string {
  const sweeps = parts.flatMap((part) => part.sweeps);
  const distributions = distributionsOf(sweeps);
  return [
    parts.length,
    parts.filter(({ withAmm }) => withAmm).length,
    sweepsOf("CURVE", sweeps).length,
    sweepsOf("POOL", sweeps).length,
    distributions.filter(({ withCurve }) => withCurve).length,
    distributions.filter(({ withPool }) => withPool).length,
    ...distributions.map(({ shareholders }) => shareholders.length).sort((a, b) => a - b),
  ].join();
}
