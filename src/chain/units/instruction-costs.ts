import {
  distributionsOf,
  isPlaceSweep,
  isWithPool,
  sweepsOf,
  type Distribution,
  type Sweep,
  type Vaults,
} from "../launchpad/choose-sweeps.ts";
import { STAGES, type Stage } from "../launchpad/fee-accounts.ts";
import type { CollectPart } from "./part.ts";

/** The most compute units that a transaction may request. */
export const MAX_UNIT_LIMIT = 1_400_000;
/** The most instructions that a transaction may run, inner ones included. Source: Agave. */
const MAX_TRACE = 64;

/** What an instruction takes. */
interface Cost {
  /**
   * The compute units to request at least. The same instruction uses more with some addresses,
   * because a program tries bump seeds at 1,500 units each.
   */
  readonly units: number;
  /** How many instructions it runs, itself included, if there are fees. */
  readonly trace: number;
}

/**
 * Measured on the launch platform's own programs. Units: with the average
 * number of bump seeds, and a margin.
 */
const COSTS = {
  collect: { units: 15_500, trace: 3 },
  /** The AMM's transfer. */
  amm: { units: 45_000, trace: 8 },
  CURVE: { units: 36_000, trace: 2 },
  POOL: { units: 26_000, trace: 3 },
  /** For each curve or pool that its sweep tops up. */
  topUp: { units: 0, trace: 1 },
  distribution: { units: 24_000, trace: 2 },
  /** For each shareholder of a distribution. */
  payout: { units: 3_400, trace: 1 },
  guard: { units: 0, trace: 1 },
  /** Once in a transaction: how far its instructions' units spread together. */
  spread: { units: 20_000, trace: 0 },
} satisfies Record<string, Cost>;
/**
 * For the first sweep to a vault: of a curve, if the creator vault is below its minimum; of a pool,
 * if the AMM vault is missing (at most, if lamports are there).
 */
const VAULT_COSTS: Readonly<Record<Stage, Cost>> = {
  CURVE: { units: 0, trace: 1 },
  POOL: { units: 25_000, trace: 7 },
};
const UNIT_LIMIT_MARGIN = 1.2;

/**
 * Returns the compute-unit limit of a transaction whose simulation used `measuredUnits`. Fees may
 * reach a place after the simulation saw none there, and a transaction that runs out of units costs
 * its fee.
 */
export function unitLimitOf(parts: readonly CollectPart[], measuredUnits: number): number {
  const wantedUnits = Math.max(Math.ceil(measuredUnits * UNIT_LIMIT_MARGIN), costOf(parts).units);
  return Math.min(wantedUnits, MAX_UNIT_LIMIT);
}

/** Whether the parts stay within the chain's limits of compute units and of instructions. */
export function canRun(parts: readonly CollectPart[]): boolean {
  const { units, trace } = costOf(parts);
  return units <= MAX_UNIT_LIMIT && trace <= MAX_TRACE;
}

/** Counts as if fees waited at every place: they may arrive before the transaction lands. */
function costOf(parts: readonly CollectPart[]): Cost {
  const hasSweeps = parts.some(({ sweeps }) => sweeps.length > 0);
  const costs: Cost[] = [
    COSTS.spread,
    ...(hasSweeps ? [COSTS.guard] : []),
    ...parts.flatMap(costsOfPart),
  ];
  const sum = { units: 0, trace: 0 };
  for (const { units, trace } of costs) {
    sum.units += units;
    sum.trace += trace;
  }
  return sum;
}

function costsOfPart({ sweeps, vaults, withAmm, withVaults }: CollectPart): Cost[] {
  return [
    ...(withVaults ? [COSTS.collect] : []),
    ...(withAmm ? [COSTS.amm] : []),
    ...costsOfPlaces(sweeps.filter(isPlaceSweep), vaults),
    ...distributionsOf(sweeps).flatMap(costsOfDistribution),
  ];
}

/** Returns what sweeps to the same vaults take. */
function costsOfPlaces(sweeps: readonly Sweep[], { missingRent }: Vaults): Cost[] {
  return STAGES.flatMap((stage) => {
    const some = sweepsOf(stage, sweeps);
    const needsVault = some.length > 0 && missingRent[stage] > 0n;
    return [
      ...some.map(() => COSTS[stage]),
      ...some.filter(({ topUp }) => topUp > 0n).map(() => COSTS.topUp),
      ...(needsVault ? [VAULT_COSTS[stage]] : []),
    ];
  });
}

function costsOfDistribution(distribution: Distribution): Cost[] {
  const { places, vaults, shareholders } = distribution;
  return [
    ...costsOfPlaces(places, vaults),
    ...(isWithPool(distribution) ? [COSTS.amm] : []),
    COSTS.distribution,
    ...shareholders.map(() => COSTS.payout),
  ];
}
