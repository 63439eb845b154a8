import { Gauge, type Registry } from "@prometheus-io/client";
import { ContractError, toRetryAfterSeconds } from "../contract/contract-error.ts";
import type { OpenStream } from "../resolvers/request-scope.ts";
import { toWideBlock } from "../fairness/budget.ts";
import { toAddressBlock } from "./client-address.ts";
import { addMs, monotonicNow, type MonotonicTime, msUntil } from "../time/monotonic.ts";

/**
 * The fractions of `streamsMax` that may be open for one IPv4 /24 or IPv6 /48, and for one IPv6
 * /32.
 */
const BLOCK_SHARE = 1 / 8;
const WIDE_BLOCK_SHARE = 1 / 4;

export interface CallerConnection {
  /** The socket's address: that of a proxy, if there is one. */
  readonly remoteAddress: string | undefined;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
  readonly disconnect: () => void;
}

interface Entry {
  /** The caller, its address block, and its IPv6 /32. */
  readonly of: readonly (string | undefined)[];
  readonly end: () => void;
  readonly endsAt: MonotonicTime;
}

export type Streams = ReturnType<typeof createStreams>;

/**
 * Limits this process's open streams. Ends a stream by a disconnect: clients do not reconnect after
 * an orderly end.
 */
export function createStreams(
  limits: { streamsMax: number; streamsPerAddress: number; streamSeconds: number },
  registry: Registry,
) {
  const { streamsMax, streamsPerAddress, streamSeconds } = limits;
  const limitOf = (share: number) => Math.max(1, Math.floor(share * streamsMax));
  /** The oldest first. */
  const all = new Set<Entry>();
  let isClosed = false;
  new Gauge({
    name: "tributary_streams_open",
    help: "Open subscriptions.",
    registers: [registry],
    collect() {
      this.set(all.size);
    },
  });

  const busy = (message: string, retryAfterSeconds?: number) =>
    new ContractError("SERVICE_BUSY", { message, retryAfterSeconds });

  /** Throws RATE_LIMITED if `owner` already has `limit` streams. */
  function limitTo(limit: number, group: string, owner: string): void {
    const streams = [...all].filter(({ of }) => of.includes(owner));
    if (streams.length < limit) return;
    const retryAfterSeconds = toRetryAfterSeconds(msUntil(streams[0]!.endsAt));
    const message = `Too many open streams: the maximum is ${limit} from ${group}. Close one, or try again in ${retryAfterSeconds} seconds.`;
    throw new ContractError("RATE_LIMITED", { message, retryAfterSeconds });
  }

  return {
    /** Opens a stream of a caller. Throws ContractError RATE_LIMITED or SERVICE_BUSY. */
    open(caller: string, connection: CallerConnection): OpenStream {
      const block = toAddressBlock(caller);
      const wideBlock = toWideBlock(block);
      if (isClosed) throw busy("The service is stopping. Connect again.", 1);
      limitTo(streamsPerAddress, "one address", caller);
      limitTo(limitOf(BLOCK_SHARE), "one IPv4 /24 or IPv6 /48", block);
      if (wideBlock) limitTo(limitOf(WIDE_BLOCK_SHARE), "one IPv6 /32", wideBlock);
      if (all.size >= streamsMax) throw busy("Too many streams are open. Try again in 30 seconds.");

      const ended = new AbortController();
      function close(): void {
        if (!all.delete(entry)) return;
        clearTimeout(timer);
        connection.signal.removeEventListener("abort", close);
        ended.abort();
      }
      function end(): void {
        connection.disconnect();
        close();
      }
      const of = [caller, block, wideBlock];
      const entry: Entry = { of, end, endsAt: addMs(monotonicNow(), streamSeconds * 1_000) };
      all.add(entry);
      const timer = setTimeout(end, streamSeconds * 1_000).unref();
      if (connection.signal.aborted) close();
      else connection.signal.addEventListener("abort", close, { once: true });
      return { signal: ended.signal, close };
    },

    /** Disconnects all streams, and refuses new ones. */
    close(): void {
      isClosed = true;
      for (const { end } of all) end();
    },
  };
}
