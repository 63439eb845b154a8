import { createServer } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

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

/**
 * A way to fail. The first fault added that matches a request is applied to it, alone; with no `delayMs`,
 * `until` or `then` it changes nothing.
 */
interface Fault<Call> {
  /** Which requests: those with a call (of a batch: any) for which this is true. Default: all. */
  readonly when?: (call: Call) => boolean;
  /** How many requests, before the fault is gone. Default: without end. */
  readonly times?: number;
  /** Waits this long first. Alone: slow, but right. */
  readonly delayMs?: number;
  /** Waits first until this has settled. Alone: late, but right. */
  readonly until?: Promise<unknown>;
  /**
   * `reset` drops the connection without an answer; `hang` keeps it open and never answers; `cut` drops it
   * halfway through the right answer; an answer is given in place of the right one.
   */
  readonly then?: "reset" | "hang" | "cut" | LoopbackAnswer;
  /** The request is carried out first, then fails: what was sent took effect, and its answer is lost. */
  readonly after?: boolean;
}

/** The faults in force; tests add them, and nothing else does. */
interface Faults<Call> {
  /** Returns a function that removes the fault again. */
  add(fault: Fault<Call>): () => void;
  clear(): void;
}

/** An HTTP server on 127.0.0.1 that remembers what it was asked, and fails when told to. */
export interface LoopbackServer<Call> {
  /** Such as `http://127.0.0.1:8899`, with no slash at the end. */
  readonly url: string;
  /** What came in, oldest first, failed or not: the last 10,000. May be emptied (`calls.length = 0`). */
  readonly calls: Call[];
  readonly faults: Faults<Call>;
  /** Ends at once, whatever is under way. */
  close(): Promise<void>;
}

const MAX_CALLS = 10_000;
const MAX_BODY_BYTES = 1024 * 1024;
const TOO_LARGE: LoopbackAnswer = { status: 413, body: "Request body too large" };

/**
 * Starts a server on 127.0.0.1 at the preferred `port`, or at any free one when that is taken or 0.
 * `describe` says what the calls in a request are, for `calls` and for the `when` of faults.
 */
export async function createLoopbackServer<Call>(options: {
  port: number;
  handle: (request: LoopbackRequest) => LoopbackAnswer | Promise<LoopbackAnswer>;
  describe: (request: LoopbackRequest) => readonly Call[];
}): Promise<LoopbackServer<Call>> {
  const calls: Call[] = [];
  let faults: { readonly fault: Fault<Call>; left: number }[] = [];
  const closing = new AbortController();

  function takeFault(described: readonly Call[]): Fault<Call> {
    const found = faults.find(({ fault }) => !fault.when || described.some(fault.when));
    if (!found) return {};
    found.left -= 1;
    if (found.left <= 0) faults = faults.filter((other) => other !== found);
    return found.fault;
  }

  async function respond(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(incoming);
    if (body === null) {
      response.shouldKeepAlive = false;
      write(response, TOO_LARGE);
      return;
    }
    const { method = "GET", headers } = incoming;
    const request = { method, url: new URL(incoming.url ?? "/", "http://127.0.0.1"), headers, body };
    const described = options.describe(request);
    calls.push(...described);
    if (calls.length > MAX_CALLS) calls.splice(0, calls.length - MAX_CALLS);

    const { delayMs = 0, until, then, after = false } = takeFault(described);
    const early = after ? await options.handle(request) : null;
    if (delayMs > 0) await sleep(delayMs, undefined, { ref: false, signal: closing.signal });
    await until;

    if (then === "hang") return;
    if (then === "reset") incoming.socket.resetAndDestroy();
    else if (then === "cut") cut(response, early ?? (await options.handle(request)));
    else write(response, then ?? early ?? (await options.handle(request)));
  }

  const server = createServer((incoming, response) => {
    respond(incoming, response).catch((error: unknown) => {
      // A mistake of the double's own must be seen; the end of it is none.
      if (closing.signal.aborted || response.headersSent) response.destroy();
      else write(response, { status: 500, body: `The sandbox failed: ${String(error)}` });
    });
  });
  // The default, 5 s, would now and then reset a connection just as a client's pool takes it up again.
  server.keepAliveTimeout = 65_000;

  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", () => {
        server.off("error", reject);
        resolve();
      });
    });
  await listen(options.port).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    return listen(0);
  });

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    faults: {
      add(fault) {
        const entry = { fault, left: fault.times ?? Infinity };
        faults.push(entry);
        return () => {
          faults = faults.filter((other) => other !== entry);
        };
      },
      clear() {
        faults = [];
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

/** The body as text, or null when it is larger than allowed; the rest of such a body is let go by. */
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
  response.writeHead(answer.status, { ...answer.headers, "content-length": String(body.length + 1) });
  response.write(body.subarray(0, Math.ceil(body.length / 2)), () => {
    response.destroy();
  });
}
