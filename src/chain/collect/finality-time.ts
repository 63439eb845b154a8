/** Until a landing has shown more. */
const FIRST_MS = 500;
/** Transactions that land late must not delay the others' first looks by more. */
const LONGEST_MS = 1_000;
/** How much longer the estimate gets. It gets shorter by as much until a look is too early. */
const LONGER = 1.1;
/** With this factor, one of ten looks is too early. */
const SHORTER = 1 / LONGER ** (1 / 9);

/** Tests pass a shorter time. The default is for production. */
export interface FinalityWaits {
  /** The first estimate of the time from a transaction's first send until it is final. */
  readonly finalityMs?: number | undefined;
}

/**
 * Estimates after which time a sent transaction is final, from this process's own landed
 * transactions: the rate of slots and the delay of finality may change at any time. A look that
 * came too early makes the estimate longer, one in time shorter.
 */
export function createFinalityTime({ finalityMs = FIRST_MS }: FinalityWaits) {
  let ms = finalityMs;
  let wasTooEarly = false;
  return {
    ms: () => ms,
    learn({ isTooEarly }: { isTooEarly: boolean }): void {
      wasTooEarly ||= isTooEarly;
      const shorter = wasTooEarly ? SHORTER : 1 / LONGER;
      ms = Math.min(ms * (isTooEarly ? LONGER : shorter), LONGEST_MS);
    },
  };
}
