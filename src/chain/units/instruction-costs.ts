import {
  distributionsOf,
  isPlaceSweep,
  isWithPool,
  sweepsOf,
  type Distribution,
  type Sweep,
  type Vaults,
} from "../launchpad/choose-sweeps.ts";
import { STAGES } from "../launchpad/fee-accounts.ts";
import { MAX_TRACE, TRACE } from "../launchpad/platform-model.ts";
import type { CollectPart } from "./part.ts";

/** The most compute units that a transaction may request. */
export const MAX_UNIT_LIMIT = 1_400_000;

/** What an instruction takes. */
interface Cost {
  /**
   * The compute units to request at least. The same instruction uses more with some addresses,
   * because a program tries bump seeds at 1,500 units each.
   */
  readonly units: number;
  /** How many more units it uses if fees arrive after a simulation that saw none. */
  readonly laterUnits: number;
  /** How many instructions it runs, itself included, if there are fees. */
  readonly trace: number;
}

/**
 * Measured on the launch platform's own programs. Units: with the average
 * number of bump seeds, and a margin.
 */
export const COSTS = {
  collect: { units: 15_500, laterUnits: 0, trace: TRACE.collect },
  /** The AMM's transfer. */
  amm: { units: 45_000, laterUnits: 40_000, trace: TRACE.transfer },
  CURVE: { units: 36_000, laterUnits: 8_100, trace: TRACE.curve },
  POOL: { units: 26_000, laterUnits: 10_000, trace: TRACE.pool },
  /** For each curve or pool that its sweep tops up. */
  topUp: { units: 0, laterUnits: 0, trace: TRACE.growth },
  /** Once in a transaction, if a curve's sweep finds the creator vault below its minimum. */
  creatorVault: { units: 0, laterUnits: 0, trace: TRACE.vaultRent },
  /** Once in a transaction, if a pool's sweep creates the AMM vault. */
  ammVault: {
    units: 25_000,
    laterUnits: 40_000,
    trace: TRACE.ammVault + 2 * TRACE.ammVaultWithLamports,
  },
  distribution: { units: 24_000, laterUnits: 0, trace: TRACE.distribution },
  /** For each shareholder of a distribution. */
  payout: { units: 3_400, laterUnits: 2_000, trace: 1 },
  guard: { units: 0, laterUnits: 0, trace: 1 },
  /** Once in a transaction: how far its instructions' units spread together. */
  spread: { units: 20_000, laterUnits: 0, trace: 0 },
} satisfies Record<string, Cost>;
const UNIT_LIMIT_MARGIN = 1.2;

/**
 * Returns the compute-unit limit of a transaction whose simulation used `measuredUnits`. Fees may
 * reach a place after the simulation saw none there, and a transaction that runs out of units costs
 * its fee.
 */
export function unitLimitOf(parts: readonly CollectPart[], measuredUnits: number): number {
  const { units, laterUnits } = costOf(parts);
  const wantedUnits = Math.max(
    Math.ceil(measuredUnits * UNIT_LIMIT_MARGIN),
    measuredUnits + laterUnits,
    units,
  );
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
  return {
    units: costs.reduce((sum, { units }) => sum + units, 0),
    laterUnits: costs.reduce((sum, { laterUnits }) => sum + laterUnits, 0),
    trace: costs.reduce((sum, { trace }) => sum + trace, 0),
  };
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
  const ofVaults = { CURVE: COSTS.creatorVault, POOL: COSTS.ammVault };
  return STAGES.flatMap((stage) => {
    const some = sweepsOf(stage, sweeps);
    const needsVault = some.length > 0 && missingRent[stage] > 0n;
    return [
      ...some.flatMap(({ topUp }) => [COSTS[stage], ...(topUp > 0n ? [COSTS.topUp] : [])]),
      ...(needsVault ? [ofVaults[stage]] : []),
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
