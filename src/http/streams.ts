import { Counter, Gauge, type Registry } from "@prometheus-io/client";
import { ContractError, toRetryAfterSeconds } from "../contract/contract-error.ts";
import { StreamBroken, type OpenStream } from "../resolvers/request-scope.ts";
import { toAddressBlock } from "./client-address.ts";

/** The part of all streams that the callers of one address block may have. */
const BLOCK_SHARE = 1 / 8;

/** The operator's limits of streams. */
export interface StreamLimits {
  readonly max: number;
  readonly perAddress: number;
  /** How long a stream lasts. */
  readonly seconds: number;
}

/** A caller's connection. */
export interface CallerConnection {
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
  /** Breaks it off. Absent where the runtime cannot: the body of a stream then fails. */
  readonly disconnect?: (() => void) | undefined;
}

/** A stream, and when its time is up. */
interface Entry {
  readonly caller: string;
  readonly end: () => void;
  readonly endsAt: number;
}

export type Streams = ReturnType<typeof createStreams>;

const REFUSALS = ["address", "block", "total", "stopping"] as const;
type Refusal = (typeof REFUSALS)[number];

/**
 * Counts the open streams of this process, and limits them: of a caller, of an address block, and of all. A stream whose
 * time is up breaks off, as all do when the service stops: clients take an orderly end for the last event, and
 * reconnect only after a broken one.
 */
export function createStreams({ max, perAddress, seconds }: StreamLimits, registry: Registry) {
  const perBlock = Math.max(1, Math.floor(BLOCK_SHARE * max));
  /** By address block, the oldest first. */
  const open = new Map<string, Set<Entry>>();
  let count = 0;
  let isClosed = false;
  new Gauge({
    name: "tributary_streams_open",
    help: "Open subscriptions.",
    registers: [registry],
    collect() {
      this.set(count);
    },
  });
  const events = new Counter({
    name: "tributary_stream_events_total",
    help: "Events sent to subscriptions.",
    registers: [registry],
  });
  const refusals = new Counter({
    name: "tributary_stream_refusals_total",
    help: "Subscriptions refused because their address (reason: address), its IPv4 /24 or IPv6 /48 (reason: block) or all callers together (reason: total) had too many, or because the service stops (reason: stopping).",
    labelNames: ["reason"],
    registers: [registry],
  });
  for (const reason of REFUSALS) refusals.inc({ reason }, 0);

  function refuse(reason: Refusal, error: ContractError): never {
    refusals.inc({ reason });
    throw error;
  }

  /** Refuses one more than `streams`, the oldest first, if they are as many as `limit`. */
  function limitTo(limit: number, reason: Refusal, group: string, streams: readonly Entry[]): void {
    const [oldest] = streams;
    if (!oldest || streams.length < limit) return;
    const retryAfterSeconds = toRetryAfterSeconds(oldest.endsAt - performance.now());
    const message = `Too many open streams: the maximum is ${limit} from ${group}. Close one, or try again in ${retryAfterSeconds} seconds.`;
    refuse(reason, new ContractError("RATE_LIMITED", { message, retryAfterSeconds }));
  }

  return {
    /** Opens a stream of a caller. Throws ContractError RATE_LIMITED or SERVICE_BUSY. */
    open(caller: string, connection: CallerConnection): OpenStream {
      const block = toAddressBlock(caller);
      const inBlock = open.get(block) ?? new Set();
      if (isClosed) {
        const message = "The service is stopping. Connect again.";
        refuse("stopping", new ContractError("SERVICE_BUSY", { message, retryAfterSeconds: 1 }));
      }
      const streams = [...inBlock];
      const own = streams.filter((entry) => entry.caller === caller);
      limitTo(perAddress, "address", "one address", own);
      limitTo(perBlock, "block", "one IPv4 /24 or IPv6 /48", streams);
      if (count >= max) {
        const message = "Too many streams are open. Try again in 30 seconds.";
        refuse("total", new ContractError("SERVICE_BUSY", { message }));
      }

      const ended = new AbortController();
      function close(reason?: StreamBroken): void {
        if (!inBlock.delete(entry)) return;
        count--;
        if (inBlock.size === 0) open.delete(block);
        clearTimeout(timer);
        connection.signal.removeEventListener("abort", leave);
        ended.abort(reason);
      }
      function leave(): void {
        close();
      }
      function end(): void {
        connection.disconnect?.();
        close(connection.disconnect ? undefined : new StreamBroken("the stream has ended"));
      }
      const entry: Entry = { caller, end, endsAt: performance.now() + seconds * 1_000 };
      inBlock.add(entry);
      open.set(block, inBlock);
      count++;
      const timer = setTimeout(end, seconds * 1_000).unref();
      if (connection.signal.aborted) leave();
      else connection.signal.addEventListener("abort", leave, { once: true });
      return {
        signal: ended.signal,
        close: leave,
        sent: () => {
          events.inc();
        },
      };
    },

    /** Breaks off all streams, and refuses further ones. */
    close(): void {
      isClosed = true;
      for (const inBlock of open.values()) for (const { end } of inBlock) end();
    },
  };
}
