const FIRST_MS = 500;
const MAX_MS = 30_000;

export type Backoff = ReturnType<typeof createBackoff>;

/**
 * After a failure, backs off for half a second, and twice as long after each further failure, up to
 * half a minute.
 */
export function createBackoff() {
  let failuresInARow = 0;
  let endsAt = -Infinity;
  const isActive = () => endsAt > performance.now();

  return {
    isActive,
    failuresInARow: () => failuresInARow,

    /**
     * Returns whether this failure starts a backoff: failures at the same moment count as one.
     */
    fail(): boolean {
      if (isActive()) return false;
      endsAt = performance.now() + Math.min(FIRST_MS * 2 ** failuresInARow, MAX_MS);
      failuresInARow++;
      return true;
    },

    /** Call after a success. */
    reset(): void {
      failuresInARow = 0;
      endsAt = -Infinity;
    },
  };
}
