import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import type { Answer } from "./answers.ts";
import { overlaps } from "./replica.ts";
import { TRUSTED_CALLER, type System } from "./system.ts";
import type { Moment } from "./timeline.ts";

/** The number of client addresses. Small enough that some exceed the rate limit. */
const CALLERS = 4_000;
/** Far longer than any timeout of the gateway. */
const TIMEOUT_MS = 900_000;
/** If an account has coins, this fraction of its requests names coins. */
const NAMING_COINS = 0.5;
/**
 * The fraction of requests with coins that name all of the account's coins. The others name one.
 */
const NAMING_ALL = 0.5;
/** The fraction of requests that arrive through the trusted caller. */
const TRUSTED = 0.2;
/** How long a caller waits when its replica is down. */
const DOWN_MS = 250;

/** The replica that a request is sent to, and when it starts. */
export interface Call {
  readonly replica: number;
  readonly start: Moment;
}

export type Client = ReturnType<typeof createClient>;

/** Creates a client that sends requests from thousands of addresses. */
export function createClient({ replicas, timeline, random, alternates }: System) {
  /** The replica that got the last collect of each account, by the account's id. */
  const lastAsked = new Map<string, number>();
  const agent = new Agent({ headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS });

  /** Sends a request. Returns undefined if the replica was killed meanwhile. */
  async function send(
    { replica, start }: Call,
    path: string,
    body?: object,
  ): Promise<Answer | undefined> {
    const caller = random.below(CALLERS);
    const address = `10.9.${caller >> 8}.${caller & 255}`;
    const { url, down } = replicas[replica]!;
    try {
      const answer = await request(url + path, {
        dispatcher: agent,
        method: body ? "POST" : "GET",
        headers: {
          "x-forwarded-for": random.isChosen(TRUSTED) ? `${address}, ${TRUSTED_CALLER}` : address,
          ...(body && { "content-type": "application/json" }),
        },
        ...(body && { body: JSON.stringify(body) }),
      });
      const { statusCode: status, headers } = answer;
      return { status, retryAfter: headers["retry-after"], body: await answer.body.json() };
    } catch (error) {
      if (!overlaps(down, start.at, Date.now())) throw error;
      await sleep(DOWN_MS);
      return undefined;
    }
  }

  return {
    newCall: (replica = random.below(replicas.length)): Call => ({
      replica,
      start: timeline.now(),
    }),
    /** Chooses the replica for a collect of one account. */
    newCollect(account: SandboxAccount): Call {
      const last = alternates ? lastAsked.get(account.id) : undefined;
      const replica =
        last === undefined ? random.below(replicas.length) : (last + 1) % replicas.length;
      lastAsked.set(account.id, replica);
      return { replica, start: timeline.now() };
    },
    send,
    isRare: () => random.isChosen(0.05),
    /** Chooses none, one or all of an account's coins. */
    chooseMints({ coins }: SandboxAccount): readonly string[] {
      if (coins.length === 0 || !random.isChosen(NAMING_COINS)) return [];
      return (random.isChosen(NAMING_ALL) ? coins : [random.pick(coins)]).map(({ mint }) => mint);
    },
    close: () => agent.close(),
  };
}
