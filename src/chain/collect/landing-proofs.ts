import { monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";

/** A transaction, and when it was signed or landed, as far as that is known. */
export interface SeenTransaction {
  /** When this replica signed the transaction; undefined if another one did. */
  readonly signedAt: MonotonicTime | undefined;
  /** 0 if unknown, or if the transaction has not landed. */
  readonly slot: number;
}

/** Proves that a transaction in a slot above `slot` landed after `at`. */
export interface LandingProof {
  readonly at: MonotonicTime;
  readonly slot: number;
}

/**
 * Whether a transaction was certainly signed, or landed, after the caller asked. This is proven if
 * this replica signed it after that time, or if the newest slot of all endpoints that work, read
 * after that time, was below the transaction's. Redis proves nothing: it can return another
 * replica's transaction long after that transaction landed. In doubt, the transaction is no
 * success: with a false success, callers would count one collect twice.
 */
export function isLaterThan(
  askedAt: MonotonicTime,
  { signedAt, slot }: SeenTransaction,
  proofs: readonly LandingProof[],
): boolean {
  if (signedAt !== undefined && signedAt >= askedAt) return true;
  return proofs.some((proof) => proof.at >= askedAt && proof.slot < slot);
}

/**
 * Returns a function that reads the newest slot. Calls share a read, but none joins a read that has
 * begun before the call.
 */
export function createSlotReader(rpc: { getNewestSlot: () => Promise<number> }) {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<LandingProof> | undefined;

  async function read(): Promise<LandingProof> {
    await running;
    next = undefined;
    const at = monotonicNow();
    const slot = rpc.getNewestSlot().catch(() => Infinity);
    running = slot;
    return { at, slot: await slot };
  }

  return () => (next ??= read());
}
