import { randomInt } from "node:crypto";
import { addAbortListener } from "node:events";
import { Gauge, type Registry } from "@prometheus-io/client";
import { ContractError, retryIn, toRetryAfterSeconds } from "../contract/contract-error.ts";
import { badRequest } from "../graphql/errors.ts";
import type { OpenStream } from "../resolvers/request-scope.ts";
import { MAX_FOLLOWED } from "../schema/field-costs.ts";
import { toWideBlock } from "../fairness/budget.ts";
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

interface Stream extends OpenStream {
  /** The caller, its address block, and the block's IPv6 /32 if it has one. */
  readonly owners: readonly string[];
  /** How many accounts it follows. */
  readonly accounts: number;
  readonly endsAt: MonotonicTime;
  retryMs: number | undefined;
  end(): void;
}

const accountsOf = (streams: Iterable<Stream>): number =>
  [...streams].reduce((sum, { accounts }) => sum + accounts, 0);

export type Streams = ReturnType<typeof createStreams>;

/** Limits this process's open streams, and ends them. */
export function createStreams(
  {
    streamsMax,
    streamSeconds = STREAM_SECONDS,
  }: { streamsMax: number; streamSeconds?: number | undefined },
  registry: Registry,
) {
  const shareOf = (fraction: number) => Math.max(1, Math.floor(fraction * streamsMax));
  /** The oldest first. */
  const streams = new Set<Stream>();
  let isClosed = false;
  new Gauge({
    name: "tributary_streams_open",
    help: "Open subscriptions.",
    registers: [registry],
    collect() {
      this.set(streams.size);
    },
  });

  return {
    /**
     * Opens a stream of a caller who follows this many accounts. Throws ContractError RATE_LIMITED
     * or SERVICE_BUSY, or GraphQLError BAD_REQUEST if that can never be: clients would wait in vain.
     */
    open(
      caller: string,
      accounts: number,
      connection: { signal: AbortSignal; disconnect: () => void },
    ): OpenStream {
      if (streamsMax === 0) throw badRequest("This service has streams switched off.");
      if (isClosed) throw new ContractError("SERVICE_BUSY", retryIn(1, "The service is stopping."));
      const block = toAddressBlock(caller);
      const ownedBy = (owner: string) => [...streams].filter((each) => each.owners.includes(owner));
      const tooMany = (what: string, [oldest]: readonly Stream[]) => {
        const seconds = toRetryAfterSeconds(msUntil(oldest!.endsAt));
        return new ContractError("RATE_LIMITED", retryIn(seconds, what));
      };
      const ofCaller = ownedBy(caller);
      if (ofCaller.length >= STREAMS_PER_ADDRESS) {
        throw tooMany(
          `Too many open streams: the maximum is ${STREAMS_PER_ADDRESS} from one address. Close one.`,
          ofCaller,
        );
      }
      const limits = [
        [caller, MAX_FOLLOWED, "one address"],
        [block, shareOf(BLOCK_SHARE), "one IPv4 /24 or IPv6 /48"],
        [toWideBlock(block) ?? block, shareOf(WIDE_BLOCK_SHARE), "one IPv6 /32"],
      ] as const;
      for (const [owner, limit, group] of limits) {
        const what = `Too many accounts in open streams: the maximum is ${limit} from ${group}.`;
        if (accounts > limit) throw badRequest(what);
        const own = ownedBy(owner);
        if (accountsOf(own) + accounts > limit) throw tooMany(`${what} Close a stream.`, own);
      }
      if (accountsOf(streams) + accounts > streamsMax) {
        const busy = retryIn(RETRY_FULL_SECONDS, "Too many streams are open.");
        throw new ContractError("SERVICE_BUSY", busy);
      }

      const ending = new AbortController();
      const stream: Stream = {
        ...{ owners: limits.map(([owner]) => owner), accounts, retryMs: undefined },
        endsAt: addMs(monotonicNow(), streamSeconds * 1_000),
        signal: ending.signal,
        close() {
          streams.delete(stream);
          clearTimeout(timer);
          ending.abort();
        },
        end() {
          stream.retryMs = randomInt(LEAST_RETRY_MS, MOST_RETRY_MS);
          stream.close();
          setTimeout(connection.disconnect, DISCONNECT_MS).unref();
        },
      };
      const timer = setTimeout(stream.end, streamSeconds * 1_000).unref();
      streams.add(stream);
      // Also if the caller has disconnected already.
      addAbortListener(connection.signal, stream.close);
      return stream;
    },

    /** For the operator. */
    describe: () => ({
      open: streams.size,
      accounts: accountsOf(streams),
      most: streamsMax,
    }),

    /** Ends all streams, and refuses new ones. */
    close(): void {
      isClosed = true;
      for (const { end } of streams) end();
    },
  };
}
