import { setTimeout as sleep } from "node:timers/promises";
import type {
  LoopbackAnswer,
  LoopbackRequest,
  LoopbackServer,
} from "../../src/sandbox/loopback-server.ts";
import { parseJsonRpcCall } from "../../src/sandbox/rpc/json-rpc.ts";

/** A failure to inject. If several faults match a request, only the first one added applies. */
export interface Fault<Call> {
  /** Limits the fault to calls for which this is true. Default: it applies to every request. */
  readonly when?: (call: Call) => boolean;
  /** Removes the fault after this many requests. Default: it stays. */
  readonly times?: number;
  /** Delays the answer. Without `then`, the answer is slow but correct. */
  readonly delayMs?: number;
  /** Delays the answer until this promise settles. */
  readonly until?: Promise<unknown>;
  /**
   * `reset` closes the connection without an answer, `hang` keeps it open without one, and `cut`
   * closes it halfway through the correct answer. A `LoopbackAnswer`, given or returned, replaces
   * the correct answer.
   */
  readonly then?:
    "reset" | "hang" | "cut" | LoopbackAnswer | ((request: LoopbackRequest) => LoopbackAnswer);
  /**
   * Handles the request before failing it: the request takes effect, but the client sees no correct
   * answer.
   */
  readonly after?: boolean;
}

/** A server that fails as it is told, and records its calls. */
export interface FaultyServer<Call> extends Pick<LoopbackServer, "url" | "close"> {
  readonly faults: {
    /** Returns a function that removes the fault. */
    add(fault: Fault<Call>): () => void;
    clear(): void;
  };
  /** The calls, oldest first, including failed ones. `calls.length = 0` clears the list. */
  readonly calls: Call[];
}

const noAnswer = () => new Promise<never>(() => undefined);

/**
 * Injects faults into a server. `describe` converts a request to a call, which is passed to each
 * fault's `when`, and to `record`: by default, `calls` keeps it.
 */
export function withFaults<Call>(
  server: LoopbackServer,
  describe: (request: LoopbackRequest) => Call | undefined,
  record?: (call: Call) => void,
): FaultyServer<Call> {
  const { url, handle, close } = server;
  const faults = new Set<{ readonly fault: Fault<Call>; timesLeft: number }>();
  const calls: Call[] = [];
  const recordCall = record ?? ((call) => void calls.push(call));

  function takeFault(call: Call | undefined): Fault<Call> {
    const match = faults
      .values()
      .find(({ fault }) => !fault.when || (call !== undefined && fault.when(call)));
    if (!match) return {};
    match.timesLeft -= 1;
    if (match.timesLeft <= 0) faults.delete(match);
    return match.fault;
  }

  server.handle = async (request) => {
    const call = describe(request);
    if (call !== undefined) recordCall(call);
    const { delayMs = 0, until, then, after = false } = takeFault(call);
    const earlyAnswer = after ? handle(request) : undefined;
    if (delayMs > 0) await sleep(delayMs, undefined, { ref: false });
    await until;

    if (then === "hang") return noAnswer();
    if (then === "reset") {
      request.socket.resetAndDestroy();
      return noAnswer();
    }
    if (typeof then === "function") return then(request);
    if (typeof then === "object") return then;
    const answer = await (earlyAnswer ?? handle(request));
    if (then !== "cut") return answer;
    const { status, body } = answer;
    const half = body.slice(0, Math.ceil(body.length / 2));
    request.socket.end(
      `HTTP/1.1 ${status} \r\ncontent-length: ${2 * body.length + 1}\r\n\r\n${half}`,
    );
    return noAnswer();
  };

  return {
    ...{ url, close, calls },
    faults: {
      add(fault) {
        const entry = { fault, timesLeft: fault.times ?? Infinity };
        faults.add(entry);
        return () => {
          faults.delete(entry);
        };
      },
      clear() {
        faults.clear();
      },
    },
  };
}

/** Injects faults into a JSON-RPC endpoint. */
export const withRpcFaults = (server: LoopbackServer) =>
  withFaults(server, ({ body }) => parseJsonRpcCall(body));
