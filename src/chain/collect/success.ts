import type { Rpc } from "../rpc/rpc-client.ts";

/** In `performance.now()` time. */
interface Proof {
  /** It holds for callers who asked until then. */
  readonly at: number;
  /** What landed above this slot landed after they asked. */
  readonly slot: number;
}

/**
 * Decides which callers of a collect get success for its transaction: no signature is a success for a caller who asked
 * after it landed, at any replica.
 *
 * What this collect signs lands after everyone asked who asked before it was signed. Any other transaction, or for any
 * later caller, must land above the slot of a chain read that begins after the caller asked. The transaction need not be
 * known at that time: Redis can give another replica's long after it has landed. If the slot cannot be read, or that in
 * which the transaction landed is unknown, no later caller gets success, but hears of it as the account's last collect.
 */
export function createSuccessRule(rpc: Pick<Rpc, "getSlot" | "newestSlot">) {
  const proofs: Proof[] = [];
  let landedSlot = 0;
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

  const isProven = (askedAt: number) => proofs.some(({ at, slot }) => at >= askedAt && slot < landedSlot);

  return {
    /** Call when someone asks, or this collect must wait, while another transaction may be in flight. */
    readSlot(): void {
      next ??= running.then(() => (running = readSlot()));
    },

    /** At time `at`, a transaction that lands above `slot` had not landed. */
    add(at: number, slot: number): void {
      proofs.push({ at, slot });
    },

    /** The collect's transaction landed in this slot; 0 if it is unknown. */
    landed(slot: number): void {
      landedSlot = slot;
    },

    /** Whether the transaction that landed is a success for a caller who asked at this time. Waits for a read in flight. */
    async isFor(askedAt: number): Promise<boolean> {
      await (next ?? running);
      return isProven(askedAt);
    },
  };
}
