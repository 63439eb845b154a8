import type { EventEmitter } from "node:events";

/**
 * Limits the memory that slow callers use, of one address and in all. If a new entry exceeds a
 * limit, the oldest are cut off: callers who read and send fast never have old ones.
 */
export function createBytesInFlight(limits: { maxBytes: number; maxBytesPerAddress: number }) {
  /** Bodies that arrive, and responses that are read. The oldest first. */
  const entries = new Set<{ address: string; bytes: number; cutOff: () => void }>();

  return {
    /** Adds the bytes of a request or a response, until it closes. */
    add(address: string, bytes: number, message: EventEmitter, cutOff: () => void): void {
      if (bytes === 0) return;
      const added = { address, bytes, cutOff };
      let ofAll = bytes;
      let ofAddress = bytes;
      for (const entry of [...entries].reverse()) {
        ofAll += entry.bytes;
        if (entry.address === address) ofAddress += entry.bytes;
        const isOver = entry.address === address && ofAddress > limits.maxBytesPerAddress;
        if (!isOver && ofAll <= limits.maxBytes) continue;
        ofAll -= entry.bytes;
        entries.delete(entry);
        entry.cutOff();
      }
      entries.add(added);
      message.once("close", () => entries.delete(added));
    },
  };
}
