import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "../observability/thrown.ts";

export interface LoopbackRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface LoopbackAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

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

/** The active faults. */
export interface Faults<Call> {
  /** Returns a function that removes the fault. */
  add(fault: Fault<Call>): () => void;
  clear(): void;
}

/** An HTTP server, usually on 127.0.0.1, that can inject faults. */
export interface LoopbackServer<Call> {
  /** For example `http://127.0.0.1:8899`, without a trailing slash. */
  readonly url: string;
  readonly faults: Faults<Call>;
  /** Closes at once, and aborts requests in flight. */
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 1024 * 1024;
const TOO_LARGE: LoopbackAnswer = { status: 413, body: "Request body too large" };

/**
 * Starts a server on `host` at `port`, or at any free port if `port` is in use or 0. `describe`
 * converts a request to a call, which is passed to each fault's `when`.
 */
export async function createLoopbackServer<Call>(options: {
  host?: string | undefined;
  port: number;
  handle: (request: LoopbackRequest) => LoopbackAnswer;
  describe: (request: LoopbackRequest) => Call | undefined;
}): Promise<LoopbackServer<Call>> {
  const { host = "127.0.0.1" } = options;
  const faults = new Set<{ readonly fault: Fault<Call>; timesLeft: number }>();
  const closing = new AbortController();

  function takeFault(call: Call | undefined): Fault<Call> {
    const match = faults
      .values()
      .find(({ fault }) => !fault.when || (call !== undefined && fault.when(call)));
    if (!match) return {};
    match.timesLeft -= 1;
    if (match.timesLeft <= 0) faults.delete(match);
    return match.fault;
  }

  async function respond(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(incoming);
    if (body === null) {
      response.shouldKeepAlive = false;
      write(response, TOO_LARGE);
      return;
    }
    const { method = "GET", headers } = incoming;
    const request = {
      method,
      url: new URL(incoming.url ?? "/", "http://127.0.0.1"),
      headers,
      body,
    };
    const call = options.describe(request);
    const { delayMs = 0, until, then, after = false } = takeFault(call);
    const earlyAnswer = after ? options.handle(request) : null;
    if (delayMs > 0) await sleep(delayMs, undefined, { ref: false, signal: closing.signal });
    await until;

    if (then === "hang") return;
    if (then === "reset") incoming.socket.resetAndDestroy();
    else if (then === "cut") cut(response, earlyAnswer ?? options.handle(request));
    else if (typeof then === "function") write(response, then(request));
    else write(response, then ?? earlyAnswer ?? options.handle(request));
  }

  const server = createServer((incoming, response) => {
    respond(incoming, response).catch((error: unknown) => {
      // Report a bug of the sandbox itself, but not a request that `close` aborts.
      if (closing.signal.aborted || response.headersSent) response.destroy();
      else write(response, { status: 500, body: `The sandbox failed: ${String(error)}` });
    });
  });
  // With the default of 5 s, a connection may close just as a client's pool reuses it.
  server.keepAliveTimeout = 65_000;

  const listen = (port: number) => once(server.listen(port, host), "listening");
  await listen(options.port).catch((error: unknown) => {
    if (codeOf(error) !== "EADDRINUSE") throw error;
    return listen(0);
  });
  // Without a listener, an error would end the process.
  server.on("error", (error) => {
    process.emitWarning(error);
  });

  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`,
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
    close: () =>
      new Promise((resolve) => {
        closing.abort();
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}

/** Reads the whole body; returns its text, or null if the body is too large. */
async function readBody(incoming: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return bytes > MAX_BODY_BYTES ? null : Buffer.concat(chunks).toString("utf8");
}

function write(response: ServerResponse, answer: LoopbackAnswer): void {
  response.writeHead(answer.status, answer.headers).end(answer.body);
}

function cut(response: ServerResponse, answer: LoopbackAnswer): void {
  const body = Buffer.from(answer.body);
  response.writeHead(answer.status, {
    ...answer.headers,
    "content-length": String(body.length + 1),
  });
  response.write(body.subarray(0, Math.ceil(body.length / 2)), () => {
    response.destroy();
  });
}
