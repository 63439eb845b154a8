import type { Rpc } from "../rpc/rpc-client.ts";
import type { TransactionOutcome } from "./send-and-confirm.ts";
import { LONG_AGO, monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";

/** A transaction that a collect signed, or that it waited for. */
export interface SeenTransaction {
  /** Whether the transaction names the account. */
  readonly hasAccount: boolean;
  readonly outcome: TransactionOutcome;
  /**
   * When the collect itself signed the transaction; undefined if it did not.
   */
  readonly signedAt?: MonotonicTime | undefined;
}

/** Proves that a transaction in a slot above `slot` landed after `at`. */
interface LandingProof {
  readonly at: MonotonicTime;
  readonly slot: number;
}

/**
 * Decides what a transaction means to a caller of a collect. `landed`: the caller's result, a
 * success if the transaction did not fail. `unknown`: perhaps the caller's result. `nothing`: not
 * the caller's result.
 *
 * A transaction is the caller's result if it landed after the caller asked. This is proven if the
 * collect itself signed the transaction after the caller asked, or if the newest credible slot,
 * read after the caller asked, was below the transaction's. Redis proves nothing: it can return
 * another replica's transaction long after that transaction landed.
 *
 * In doubt, for example if no slot can be read, the answer is `nothing`: with a false success,
 * callers would count one collect twice. The caller then sees the transaction as the account's last
 * collect. A transaction of unknown outcome may have paid the caller, even if the transaction was
 * signed earlier.
 */
export function resultFor(
  askedAt: MonotonicTime,
  { hasAccount, outcome, signedAt = LONG_AGO }: SeenTransaction,
  proofs: readonly LandingProof[],
): "landed" | "unknown" | "nothing" {
  if (!hasAccount || outcome.kind === "expired") return "nothing";
  if (outcome.kind === "unknown") return "unknown";
  const isProven =
    signedAt >= askedAt || proofs.some(({ at, slot }) => at >= askedAt && slot < outcome.slot);
  return isProven ? "landed" : "nothing";
}

export function createLandingProofs(rpc: Pick<Rpc, "getNewestSlot">) {
  const proofs: LandingProof[] = [];
  let running = Promise.resolve();
  /** Starts when the read in `running` ends. All callers until then share this next read. */
  let next: Promise<void> | undefined;

  async function readSlot(): Promise<void> {
    next = undefined;
    const at = monotonicNow();
    const slot = await rpc.getNewestSlot().catch(() => Infinity);
    proofs.push({ at, slot });
  }

  return {
    /**
     * Call if a transaction may be in flight: when a caller joins, or when the collect waits for
     * another collect.
     */
    readSlot(): void {
      next ??= running.then(() => (running = readSlot()));
    },

    add(at: MonotonicTime, slot: number): void {
      proofs.push({ at, slot });
    },

    /** Returns {@link resultFor}. Waits for the read in flight if it can change the result. */
    async resultFor(askedAt: MonotonicTime, transaction: SeenTransaction) {
      if (resultFor(askedAt, transaction, proofs) === "nothing") await (next ?? running);
      return resultFor(askedAt, transaction, proofs);
    },
  };
}
