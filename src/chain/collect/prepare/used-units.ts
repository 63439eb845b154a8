import { createLruCache } from "../../../store/lru-cache.ts";
import { distributionsOf, sweepsOf } from "../../choose-sweeps.ts";
import type { CollectPart } from "../message/composer.ts";

const MAX_KINDS = 1_000;

/**
 * Remembers the most compute units that landed transactions have used, by how many instructions of
 * each kind they have: an endpoint that reports too few in a simulation must not make the next ones
 * fail.
 */
export function createUsedUnits() {
  const used = createLruCache<string, number>(MAX_KINDS);

  return {
    /** 0 if no such transaction has landed. */
    before: (parts: readonly CollectPart[]): number => used.get(kindOf(parts)) ?? 0,

    /** Records a landed transaction; ignores units above its limit, which no transaction uses. */
    landed(parts: readonly CollectPart[], units: number, unitLimit: number): void {
      const kind = kindOf(parts);
      if (units <= unitLimit && units > (used.get(kind) ?? 0)) used.set(kind, units);
    },
  };
}

/** Two transactions of one kind have as many instructions of each kind. */
function kindOf(parts: readonly CollectPart[]): string {
  const sweeps = parts.flatMap((part) => part.sweeps);
  const shared = distributionsOf(sweeps);
  return [
    parts.length,
    parts.filter(({ withAmm }) => withAmm).length,
    sweepsOf("CURVE", sweeps).length,
    sweepsOf("POOL", sweeps).length,
    shared.filter(({ withCurve }) => withCurve).length,
    shared.filter(({ withPool }) => withPool).length,
    ...shared.map(({ shareholders }) => shareholders.length).sort((a, b) => a - b),
  ].join();
}
