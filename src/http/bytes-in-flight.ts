import type { EventEmitter } from "node:events";

/** Bytes that wait for a caller: a body that arrives, or a response that is read. */
interface Entry {
  readonly address: string;
  readonly bytes: number;
  readonly cutOff: () => void;
}

/**
 * Limits the memory that slow callers use, of one address and in all. If a new entry exceeds a
 * limit, the oldest are cut off: callers who read and send fast never have old ones. An entry that
 * takes longer than `readTimeout` is cut off too.
 */
export function createBytesInFlight(limits: {
  maxBytes: number;
  maxBytesPerAddress: number;
  readTimeout: number;
}) {
  /** The oldest first. */
  const entries = new Set<Entry>();
  // Sums, because strangers can keep thousands of entries.
  const byAddress = new Map<string, number>();
  let total = 0;

  const sumOf = (address: string) => byAddress.get(address) ?? 0;

  function change(address: string, bytes: number): void {
    total += bytes;
    const sum = sumOf(address) + bytes;
    if (sum === 0) byAddress.delete(address);
    else byAddress.set(address, sum);
  }

  function remove(entry: Entry): void {
    if (entries.delete(entry)) change(entry.address, -entry.bytes);
  }

  function cutOffEntry(entry: Entry): void {
    remove(entry);
    entry.cutOff();
  }

  return {
    /** Adds the bytes of a request or a response, if it has any, until it closes. */
    add(address: string, bytes: number, message: EventEmitter, cutOff: () => void): void {
      if (!bytes) return;
      const added = { address, bytes, cutOff };
      for (const oldest of entries) {
        if (sumOf(address) + bytes <= limits.maxBytesPerAddress) break;
        if (oldest.address === address) cutOffEntry(oldest);
      }
      for (const oldest of entries) {
        if (total + bytes <= limits.maxBytes) break;
        cutOffEntry(oldest);
      }
      entries.add(added);
      change(address, bytes);
      const timer = setTimeout(cutOff, limits.readTimeout).unref();
      message.once("close", () => {
        clearTimeout(timer);
        remove(added);
      });
    },
  };
}
