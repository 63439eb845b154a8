import type { LiteSVM } from "litesvm";

/** How sure a reader wants to be that what it reads stays. */
export type Commitment = "processed" | "confirmed" | "finalized";

/** How many slots the newest block of each commitment lies behind the current one. */
const SLOTS_BEHIND: Readonly<Record<Commitment, number>> = { processed: 0, confirmed: 1, finalized: 32 };

/** A blockhash is valid in this many blocks after its own, as on the real chain (MAX_PROCESSING_AGE). */
const VALID_BLOCKS = 150;
const KEPT_BLOCKS = 300;

/** On the real chain some slots have no block: code that takes a slot for a block height must fail here too. */
const SLOTS_WITHOUT_BLOCK = 22_000_000;

/** The chain's time: its slots, each with a block, and the blockhashes that LiteSVM itself forgets. */
export interface Slots {
  slot(commitment: Commitment): number;
  blockHeight(commitment: Commitment): number;
  latestBlockhash(commitment: Commitment): { blockhash: string; lastValidBlockHeight: number };
  /** Whether a reader at this commitment knows the blockhash and does not find it expired. */
  isBlockhashValid(blockhash: string, commitment: Commitment): boolean;
  /** Of the current slot, in seconds since 1970. */
  blockTime(): number;
  /** Lets slots pass at once; after 150 more, what was the latest blockhash is in its last block. */
  advanceSlots(count: number): void;
}

/** Starts at LiteSVM's own first slot, with enough blocks behind it for every commitment to have one. */
export function createSlots(svm: LiteSVM): Slots {
  let slot = Number(svm.getClock().slot);
  let blockTime = 0;
  const blocks: { blockhash: string; height: number }[] = [];

  function advanceSlots(count: number): void {
    for (let i = 0; i < count; i++) {
      slot += 1;
      blockTime = Math.floor(Date.now() / 1000);
      svm.warpToSlot(BigInt(slot));
      const clock = svm.getClock();
      clock.unixTimestamp = BigInt(blockTime);
      svm.setClock(clock);
      svm.expireBlockhash();
      blocks.push({ blockhash: svm.latestBlockhash(), height: slot - SLOTS_WITHOUT_BLOCK });
      if (blocks.length > KEPT_BLOCKS) blocks.shift();
    }
  }
  advanceSlots(SLOTS_BEHIND.finalized + 1);

  const latest = (commitment: Commitment) => blocks.at(-1 - SLOTS_BEHIND[commitment])!;
  return {
    slot: (commitment) => slot - SLOTS_BEHIND[commitment],
    blockHeight: (commitment) => latest(commitment).height,
    latestBlockhash(commitment) {
      const { blockhash, height } = latest(commitment);
      return { blockhash, lastValidBlockHeight: height + VALID_BLOCKS };
    },
    isBlockhashValid(blockhash, commitment) {
      const block = blocks.find((other) => other.blockhash === blockhash);
      const { height } = latest(commitment);
      return block !== undefined && block.height <= height && height <= block.height + VALID_BLOCKS;
    },
    blockTime: () => blockTime,
    advanceSlots,
  };
}
