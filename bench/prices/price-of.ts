import { connect } from "node:net";
import { Agent, request } from "undici";
import type { TestSandbox } from "../../test/support/sandbox.ts";
import { callerOf, repeat } from "../measure.ts";

/** A request that costs the gateway more than the caller. */
export interface Attack {
  /** The key of the attack's price in prices.test.ts. */
  readonly name: string;
  /** Called once, before the first request. */
  readonly prepare?: (target: Target) => unknown;
  /** Sends one request; resolves when the gateway has finished its work for the request. */
  readonly send: (target: Target) => Promise<unknown>;
}

/** A gateway to attack, whose process reports its CPU time. */
export type Target = ReturnType<typeof createTarget>;

/** The gateway at `url` must trust this machine as a proxy, and serve `/metrics`. */
export function createTarget(
  url: string,
  sandbox: Pick<TestSandbox, "accounts" | "chain" | "rpc">,
) {
  const { hostname, port } = new URL(url);
  const dispatcher = new Agent({ connections: 1, pipelining: 1 });
  let callers = 0;

  return {
    url,
    /** The sandbox that the gateway uses. */
    sandbox,

    /**
     * Sends a request on a connection that stays open; returns the status. The request comes from a
     * new caller unless `headers` name one, and is a POST if `json` is given.
     */
    async send(path: string, headers?: Record<string, string>, json?: object): Promise<number> {
      const { statusCode, body } = await request(url + path, {
        dispatcher,
        headers: {
          "x-forwarded-for": callerOf(callers++),
          "content-type": "application/json",
          ...headers,
        },
        ...(json && { method: "POST", body: JSON.stringify(json) }),
      });
      await body.arrayBuffer();
      return statusCode;
    },

    /**
     * Writes the head of a request on a new connection, then the pieces of the body, each in a
     * separate packet. Resolves when the gateway has ended the connection.
     */
    async flood(head: string, pieces: Iterable<string>): Promise<void> {
      // With allowHalfOpen, this side keeps sending after the gateway has ended its side.
      const socket = connect({
        host: hostname,
        port: Number(port),
        allowHalfOpen: true,
        noDelay: true,
      });
      const ended = new Promise((resolve) => socket.once("end", resolve).once("close", resolve));
      socket.on("error", () => undefined).resume();
      socket.write(head);
      for (const piece of pieces) {
        if (socket.destroyed) break;
        socket.write(piece);
        await new Promise(setImmediate);
      }
      await ended;
      socket.destroy();
    },

    /** The CPU time of the gateway's process so far, in ms. */
    async cpuMs(): Promise<number> {
      const { body } = await request(`${url}/metrics`, { dispatcher });
      return Number(/^process_cpu_seconds_total (.*)$/m.exec(await body.text())![1]) * 1_000;
    },

    close: () => dispatcher.close(),
  };
}

const WARM_UP_LOOKUPS = 500;
const LOOKUPS = 50;
/** How many requests of an attack are in flight at once. */
const REQUESTS = 3;
const ROUNDS = 5;

const lookUp = (count: number, { send }: Target) =>
  repeat({ count, inFlight: count }, () => send("/wallet/lookup?handle=creator"));

/** Makes enough lookups for V8 to optimize their code. */
export const warmUp = (target: Target) => lookUp(WARM_UP_LOOKUPS, target);

/**
 * The most CPU time that one request of the rate limit may take, in lookups of a cached name. What
 * takes more must count as more requests.
 */
export const MAX_LOOKUPS_PER_REQUEST = 60;

/**
 * The CPU time that a lookup of a cached name takes now, in ms. Returns that of the cheapest round,
 * because other work on the machine can only add CPU time.
 */
export async function lookupCpuMs(target: Target): Promise<number> {
  const measuring = await leastCpuOf(target, () => Promise.resolve());
  return ((await leastCpuOf(target, () => lookUp(LOOKUPS, target))) - measuring) / LOOKUPS;
}

/** The CPU time of the cheapest of some rounds, in ms. */
async function leastCpuOf(target: Target, run: () => Promise<unknown>): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < ROUNDS; round++) {
    const before = await target.cpuMs();
    await run();
    least = Math.min(least, (await target.cpuMs()) - before);
  }
  return least;
}

/**
 * The CPU time of an attack's request as a multiple of a lookup's. This ratio does not depend on
 * the machine.
 */
export async function priceOf(attack: Attack, target: Target): Promise<number> {
  const sendAll = () => repeat({ count: REQUESTS, inFlight: REQUESTS }, () => attack.send(target));
  await attack.prepare?.(target);
  await sendAll();
  const measuring = await leastCpuOf(target, () => Promise.resolve());
  const lookupMs = await lookupCpuMs(target);
  const attacks = (await leastCpuOf(target, sendAll)) - measuring;
  return Math.max(attacks, 0) / REQUESTS / lookupMs;
}
