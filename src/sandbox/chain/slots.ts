import type { LiteSVM } from "litesvm";

export type Commitment = "processed" | "confirmed" | "finalized";

/** How many slots the latest block at each commitment is behind the current slot. */
const SLOTS_BEHIND: Readonly<Record<Commitment, number>> = {
  processed: 0,
  confirmed: 1,
  finalized: 32,
};

/**
 * A blockhash is valid for this many blocks after its own block, as on mainnet
 * (MAX_PROCESSING_AGE).
 */
const VALID_BLOCKS = 150;
const KEPT_BLOCKS = 300;

/**
 * Mainnet has slots without a block. Here too, heights and slots differ, and code that confuses
 * them fails.
 */
const SLOTS_WITHOUT_BLOCK = 22_000_000;

/** SLOTS_BEHIND on a cluster with Alpenglow, where `finalized` equals `confirmed`. */
const SLOTS_BEHIND_WITH_ALPENGLOW = { ...SLOTS_BEHIND, finalized: SLOTS_BEHIND.confirmed };

export type Slots = ReturnType<typeof createSlots>;

/**
 * The chain's clock: slots with one block each. Keeps the blockhashes, because LiteSVM keeps only
 * the latest. Starts at LiteSVM's first slot and advances until a finalized block exists.
 */
export function createSlots(svm: LiteSVM) {
  let slot = Number(svm.getClock().slot);
  let blockTime = 0;
  let behind = SLOTS_BEHIND;
  let isMigrating = false;
  const blocks: { slot: number; blockhash: string; height: number }[] = [];

  function advanceSlots(count: number): void {
    for (let i = 0; i < count; i++) {
      const height = 1 + (blocks.at(-1)?.height ?? slot - SLOTS_WITHOUT_BLOCK);
      slot += 1;
      blockTime = Math.floor(Date.now() / 1000);
      svm.warpToSlot(BigInt(slot));
      const clock = svm.getClock();
      clock.unixTimestamp = BigInt(blockTime);
      svm.setClock(clock);
      svm.expireBlockhash();
      blocks.push({ slot, blockhash: svm.latestBlockhash(), height });
      if (isMigrating)
        behind = { processed: 0, confirmed: behind.confirmed + 1, finalized: behind.finalized + 1 };
      else if (blocks.length > KEPT_BLOCKS) blocks.shift();
    }
  }
  advanceSlots(SLOTS_BEHIND.finalized + 1);

  const latest = (commitment: Commitment) => blocks.at(-1 - behind[commitment])!;
  return {
    /** The slot of the latest block at that commitment. */
    slot: (commitment: Commitment) => latest(commitment).slot,
    blockHeight: (commitment: Commitment) => latest(commitment).height,
    latestBlockhash(commitment: Commitment) {
      const { blockhash, height } = latest(commitment);
      return { blockhash, lastValidBlockHeight: height + VALID_BLOCKS };
    },
    isBlockhashValid(blockhash: string): boolean {
      const block = blocks.find((other) => other.blockhash === blockhash);
      return block !== undefined && latest("processed").height <= block.height + VALID_BLOCKS;
    },
    /** The time of the current slot, in seconds since 1970. */
    blockTime: () => blockTime,
    /** Advances by `count` slots at once. The latest blockhash expires after more than 150. */
    advanceSlots,
    /**
     * Migrates to Alpenglow as SIMD-0384 says: no further block is confirmed until the returned
     * function is called. The function drops the unconfirmed blocks. From then on `confirmed`
     * equals `finalized`.
     */
    startMigration(): () => void {
      // Confirms the transactions of the current slot, so that none of them is dropped.
      advanceSlots(SLOTS_BEHIND.confirmed);
      isMigrating = true;
      return () => {
        isMigrating = false;
        blocks.splice(-behind.confirmed);
        behind = SLOTS_BEHIND_WITH_ALPENGLOW;
        advanceSlots(SLOTS_BEHIND.confirmed);
      };
    },
    isMigrating: () => isMigrating,
  };
}
