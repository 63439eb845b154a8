import { randomInt } from "node:crypto";
import { Gauge, type Registry } from "@prometheus-io/client";
import { ContractError, retryIn, toRetryAfterSeconds } from "../contract/contract-error.ts";
import { badRequest } from "../graphql/errors.ts";
import type { OpenStream } from "../resolvers/request-scope.ts";
import { MAX_FOLLOWED } from "../schema/field-costs.ts";
import { toWideBlock } from "../fairness/budget.ts";
import type { CallerConnection } from "./caller-connection.ts";
import { toAddressBlock } from "./client-address.ts";
import { addMs, monotonicNow, type MonotonicTime, msUntil } from "../time/monotonic.ts";

/**
 * The fractions of `streamsMax` accounts that may be followed from one IPv4 /24 or IPv6 /48, and
 * from one IPv6 /32.
 */
const BLOCK_SHARE = 1 / 8;
const WIDE_BLOCK_SHARE = 1 / 4;
/** As many as a caller may open in a minute, by default. */
export const STREAMS_PER_ADDRESS = 20;
/** Short, so that streams soon move to new replicas. Opening one again costs one request. */
export const STREAM_SECONDS = 600;
/** When to try again while all accounts are taken. Most end before their time. */
const RETRY_FULL_SECONDS = 30;
/**
 * The callers of streams that the service ends come back after a random time from the least to the
 * most: those of a replica that stops do not come all at once to the others.
 */
const LEAST_RETRY_MS = 1_000;
const MOST_RETRY_MS = 10_000;
/** A caller who has not read the last event by then is disconnected. */
const DISCONNECT_MS = 2_000;

interface Entry {
  /** How many accounts the stream follows. */
  readonly accounts: number;
  readonly end: () => void;
  readonly endsAt: MonotonicTime;
}

const accountsOf = (streams: Iterable<Entry>): number =>
  [...streams].reduce((sum, { accounts }) => sum + accounts, 0);

/** `streams`: the oldest ends first. */
function tooMany(what: string, [oldest]: Iterable<Entry>): ContractError {
  const seconds = oldest ? toRetryAfterSeconds(msUntil(oldest.endsAt)) : RETRY_FULL_SECONDS;
  return new ContractError("RATE_LIMITED", retryIn(seconds, what));
}

export type Streams = ReturnType<typeof createStreams>;

/** Limits this process's open streams, and ends them. */
export function createStreams(
  limits: {
    streamsMax: number;
    streamsPerAddress?: number | undefined;
    streamSeconds?: number | undefined;
  },
  registry: Registry,
) {
  const { streamsMax } = limits;
  const { streamsPerAddress = STREAMS_PER_ADDRESS, streamSeconds = STREAM_SECONDS } = limits;
  const limitOf = (share: number) => Math.max(1, Math.floor(share * streamsMax));
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

  /**
   * Throws RATE_LIMITED if `owner` would then follow more than `limit` accounts, or BAD_REQUEST if
   * these alone are too many.
   */
  function limitTo(limit: number, group: string, owner: string, accounts: number): void {
    const what = `Too many accounts in open streams: the maximum is ${limit} from ${group}.`;
    if (accounts > limit) throw badRequest(what);
    const streams = byOwner.get(owner) ?? new Set();
    if (accountsOf(streams) + accounts > limit) throw tooMany(`${what} Close a stream.`, streams);
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
     * Opens a stream of a caller who follows this many accounts. Throws ContractError RATE_LIMITED
     * or SERVICE_BUSY, or GraphQLError BAD_REQUEST if that can never be: clients would wait in vain.
     */
    open(
      caller: string,
      accounts: number,
      connection: Pick<CallerConnection, "signal" | "disconnect">,
    ): OpenStream {
      if (streamsMax === 0) throw badRequest("This service has streams switched off.");
      const block = toAddressBlock(caller);
      const wideBlock = toWideBlock(block);
      if (isClosed) throw new ContractError("SERVICE_BUSY", retryIn(1, "The service is stopping."));
      const streamsOfCaller = byOwner.get(caller) ?? new Set();
      if (streamsOfCaller.size >= streamsPerAddress) {
        const what = `Too many open streams: the maximum is ${streamsPerAddress} from one address. Close one.`;
        throw tooMany(what, streamsOfCaller);
      }
      limitTo(MAX_FOLLOWED, "one address", caller, accounts);
      limitTo(limitOf(BLOCK_SHARE), "one IPv4 /24 or IPv6 /48", block, accounts);
      if (wideBlock) limitTo(limitOf(WIDE_BLOCK_SHARE), "one IPv6 /32", wideBlock, accounts);
      if (accountsOf(all) + accounts > streamsMax)
        throw new ContractError(
          "SERVICE_BUSY",
          retryIn(RETRY_FULL_SECONDS, "Too many streams are open."),
        );

      const ending = new AbortController();
      let retryMs: number | undefined;
      function close(): void {
        if (!remove(entry, owners)) return;
        clearTimeout(timer);
        connection.signal.removeEventListener("abort", close);
        ending.abort();
      }
      function end(): void {
        retryMs = randomInt(LEAST_RETRY_MS, MOST_RETRY_MS);
        close();
        setTimeout(connection.disconnect, DISCONNECT_MS).unref();
      }
      const owners = [caller, block, wideBlock].filter((owner) => owner !== undefined);
      const entry: Entry = { accounts, end, endsAt: addMs(monotonicNow(), streamSeconds * 1_000) };
      add(entry, owners);
      const timer = setTimeout(end, streamSeconds * 1_000).unref();
      if (connection.signal.aborted) close();
      else connection.signal.addEventListener("abort", close, { once: true });
      return {
        signal: ending.signal,
        get retryMs() {
          return retryMs;
        },
        close,
      };
    },

    /** For the operator. */
    describe: () => ({ open: all.size, accounts: accountsOf(all), most: streamsMax }),

    /** Ends all streams, and refuses new ones. */
    close(): void {
      isClosed = true;
      for (const { end } of all) end();
    },
  };
}
