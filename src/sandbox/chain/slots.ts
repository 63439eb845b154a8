import type { LiteSvm } from "litesvm/dist/internal.js";
import { monotonicNow, msSince, type MonotonicTime } from "../../time/monotonic.ts";

/** A block that is confirmed is finalized too. */
export type Commitment = "processed" | "confirmed" | "finalized";

/**
 * A blockhash is valid for this many blocks after its own block, as on mainnet
 * (MAX_PROCESSING_AGE).
 */
const VALID_BLOCKS = 150;
const KEPT_BLOCKS = 300;

export interface SlotOptions {
  /**
   * A block is final once it has this many successors: one with Alpenglow, the consensus of mainnet
   * since October 2026; 32 before.
   */
  readonly blocksToFinality?: number | undefined;
  /** How long after its slot's end a block is at the earliest confirmed. */
  readonly finalityMs?: number | undefined;
  /** Called for the time of each block, in ms since 1970. */
  readonly now?: (() => number) | undefined;
}
/**
 * Mainnet has many slots without a block. Here too, heights and slots differ, and code that
 * confuses them fails.
 */
const SLOTS_WITHOUT_BLOCK = 22_000_000;

interface Block {
  readonly slot: number;
  readonly blockhash: string;
  /** In seconds since 1970. */
  readonly time: number;
  readonly madeAt: MonotonicTime;
}

/**
 * The chain's clock: slots, each with a block. Keeps the blockhashes, because LiteSVM keeps
 * only the latest. Starts at LiteSVM's first slot, and at once makes blocks until one is finalized.
 */
export function createSlots(
  svm: LiteSvm,
  { blocksToFinality = 1, finalityMs = 0, now = () => Date.now() }: SlotOptions,
) {
  let slot = Number(svm.getClock().slot);
  const blocks: Block[] = [];

  function advanceSlots(count: number): void {
    for (let i = 0; i < count; i++) {
      slot += 1;
      const time = Math.floor(now() / 1000);
      svm.warpToSlot(BigInt(slot));
      const clock = svm.getClock();
      clock.unixTimestamp = BigInt(time);
      svm.setClock(clock);
      svm.expireBlockhash();
      const blockhash = svm.latestBlockhash();
      blocks.push({ slot, blockhash, time, madeAt: monotonicNow() });
      if (blocks.length > KEPT_BLOCKS) blocks.shift();
    }
  }
  // One more than needed, because the latest slot's end may not be final yet.
  advanceSlots(2 + blocksToFinality);

  function latest(commitment: Commitment) {
    // A block's slot ends when the next block begins.
    const isFinal = msSince(blocks.at(-1)!.madeAt) >= finalityMs;
    const behind = commitment === "processed" ? 0 : blocksToFinality + (isFinal ? 0 : 1);
    return blocks.at(-1 - behind)!;
  }
  return {
    /** The slot of the latest block at that commitment. */
    slot: (commitment: Commitment) => latest(commitment).slot,
    blockHeight: (commitment: Commitment) => latest(commitment).slot - SLOTS_WITHOUT_BLOCK,
    latestBlockhash(commitment: Commitment) {
      const { blockhash, slot } = latest(commitment);
      return { blockhash, lastValidBlockHeight: slot - SLOTS_WITHOUT_BLOCK + VALID_BLOCKS };
    },
    isBlockhashValid: (blockhash: string) =>
      blocks.some(
        (block) =>
          block.blockhash === blockhash && latest("processed").slot <= block.slot + VALID_BLOCKS,
      ),
    /** The time of the latest block, in seconds since 1970. */
    blockTime: () => latest("processed").time,
    /** Advances at once by `count` slots. The latest blockhash expires after more than 150. */
    advanceSlots,
  };
}
