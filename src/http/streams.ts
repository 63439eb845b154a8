import { Gauge, type Registry } from "@prometheus-io/client";
import { ContractError, retryIn, toRetryAfterSeconds } from "../contract/contract-error.ts";
import { badRequest } from "../graphql/errors.ts";
import type { OpenStream } from "../resolvers/request-scope.ts";
import { toWideBlock } from "../fairness/budget.ts";
import type { CallerConnection } from "./caller-connection.ts";
import { toAddressBlock } from "./client-address.ts";
import { addMs, monotonicNow, type MonotonicTime, msUntil } from "../time/monotonic.ts";

/**
 * The fractions of `streamsMax` that may be open for one IPv4 /24 or IPv6 /48, and for one IPv6
 * /32.
 */
const BLOCK_SHARE = 1 / 8;
const WIDE_BLOCK_SHARE = 1 / 4;
/** When to try again while all streams are open. Most end before their time. */
const RETRY_FULL_SECONDS = 30;

interface Entry {
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
  /** The streams of each caller, address block, and IPv6 /32, the oldest first. */
  const byOwner = new Map<string, Set<Entry>>();
  let isClosed = false;
  new Gauge({
    name: "tributary_streams_open",
    help: "Open subscriptions.",
    registers: [registry],
    collect() {
      this.set(all.size);
    },
  });

  /** Throws RATE_LIMITED if `owner` already has `limit` streams. */
  function limitTo(limit: number, group: string, owner: string): void {
    const streams = byOwner.get(owner) ?? new Set();
    const [oldest] = streams;
    if (!oldest || streams.size < limit) return;
    const seconds = toRetryAfterSeconds(msUntil(oldest.endsAt));
    const what = `Too many open streams: the maximum is ${limit} from ${group}. Close one.`;
    throw new ContractError("RATE_LIMITED", retryIn(seconds, what));
  }

  function add(entry: Entry, owners: readonly string[]): void {
    all.add(entry);
    for (const owner of owners) byOwner.set(owner, (byOwner.get(owner) ?? new Set()).add(entry));
  }

  function remove(entry: Entry, owners: readonly string[]): boolean {
    for (const owner of owners) {
      const streams = byOwner.get(owner);
      streams?.delete(entry);
      if (streams?.size === 0) byOwner.delete(owner);
    }
    return all.delete(entry);
  }

  return {
    /**
     * Opens a stream of a caller. Throws ContractError RATE_LIMITED or SERVICE_BUSY, or GraphQLError
     * BAD_REQUEST if there are never streams: clients would wait in vain.
     */
    open(caller: string, connection: Pick<CallerConnection, "signal" | "disconnect">): OpenStream {
      if (streamsMax === 0) throw badRequest("This service has streams switched off.");
      const block = toAddressBlock(caller);
      const wideBlock = toWideBlock(block);
      if (isClosed) throw new ContractError("SERVICE_BUSY", retryIn(1, "The service is stopping."));
      limitTo(streamsPerAddress, "one address", caller);
      limitTo(limitOf(BLOCK_SHARE), "one IPv4 /24 or IPv6 /48", block);
      if (wideBlock) limitTo(limitOf(WIDE_BLOCK_SHARE), "one IPv6 /32", wideBlock);
      if (all.size >= streamsMax)
        throw new ContractError(
          "SERVICE_BUSY",
          retryIn(RETRY_FULL_SECONDS, "Too many streams are open."),
        );

      const ending = new AbortController();
      function close(): void {
        if (!remove(entry, owners)) return;
        clearTimeout(timer);
        connection.signal.removeEventListener("abort", close);
        ending.abort();
      }
      function end(): void {
        connection.disconnect();
        close();
      }
      const owners = [caller, block, wideBlock].filter((owner) => owner !== undefined);
      const entry: Entry = { end, endsAt: addMs(monotonicNow(), streamSeconds * 1_000) };
      add(entry, owners);
      const timer = setTimeout(end, streamSeconds * 1_000).unref();
      if (connection.signal.aborted) close();
      else connection.signal.addEventListener("abort", close, { once: true });
      return { signal: ending.signal, close };
    },

    /** Disconnects all streams, and refuses new ones. */
    close(): void {
      isClosed = true;
      for (const { end } of all) end();
    },
  };
}
