import type { Rpc } from "../rpc/rpc-client.ts";
import type { TransactionOutcome } from "./send-and-confirm.ts";

/** A transaction that a collect signed or followed. */
export interface SeenTransaction {
  /** Whether the account is one of those that it names. */
  readonly hasAccount: boolean;
  readonly outcome: TransactionOutcome;
}

/** Shows that what lands above `slot` landed after all callers asked who asked until `at`, in `performance.now()` time. */
interface LandingProof {
  readonly at: number;
  readonly slot: number;
}

/**
 * What a transaction is to a caller of a collect. `landed`: its result, a success if it did not fail. `unknown`: it may be
 * that. `nothing`: it is not.
 *
 * A landed transaction is the caller's if it landed after the caller asked. The collect that the caller started or
 * joined knows that of what it signed itself, if the caller asked before. Any other transaction, or for a later caller,
 * must have landed above the slot of a chain read that began after the caller asked: Redis can give another replica's
 * transaction long after it has landed. Callers who join are compared separately. If in doubt, for example because the
 * slot cannot be read, it is not the caller's, who hears of it as the account's last collect instead: a false success
 * would be counted twice.
 *
 * A transaction of unknown outcome may have paid the caller, whenever it was signed.
 */
export function resultFor(
  askedAt: number,
  { hasAccount, outcome }: SeenTransaction,
  proofs: readonly LandingProof[],
): "landed" | "unknown" | "nothing" {
  if (!hasAccount || outcome.kind === "expired") return "nothing";
  if (outcome.kind === "unknown") return "unknown";
  return proofs.some(({ at, slot }) => at >= askedAt && slot < outcome.slot) ? "landed" : "nothing";
}

/** Collects the proofs of one collect. */
export function createLandingProofs(rpc: Pick<Rpc, "getSlot" | "newestSlot">) {
  const proofs: LandingProof[] = [];
  let running = Promise.resolve();
  /** Begins when `running` ends, so that all who ask meanwhile share it. */
  let next: Promise<void> | undefined;

  async function readSlot(): Promise<void> {
    next = undefined;
    const at = performance.now();
    // The endpoint that answers may be behind the others. A transaction may still land in the newest slot.
    const newest = rpc.newestSlot() - 1;
    const slot = await rpc.getSlot().catch(() => Infinity);
    proofs.push({ at, slot: Math.max(slot, newest) });
  }

  return {
    /** Call when someone asks, or the collect must wait, while another transaction may be in flight. */
    readSlot(): void {
      next ??= running.then(() => (running = readSlot()));
    },

    add(at: number, slot: number): void {
      proofs.push({ at, slot });
    },

    /** {@link resultFor}, once the read in flight has ended. */
    async resultFor(askedAt: number, transaction: SeenTransaction) {
      await (next ?? running);
      return resultFor(askedAt, transaction, proofs);
    },
  };
}
