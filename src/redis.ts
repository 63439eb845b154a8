import { setTimeout as sleep } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "@prometheus-io/client";
import { Redis as Client, ReplyError } from "ioredis";
import type { Logger } from "./log.ts";

/** The text of a Lua script, its KEYS and its ARGV. */
type Script = [text: string, keys: readonly string[], args: readonly (string | number)[]];

/** What all replicas share. */
export interface Redis {
  /**
   * Runs a Lua script in one round trip. Undefined when Redis cannot be had: at once while it is known to
   * be away, else after 120 ms at most; the script may have run all the same.
   */
  run(...script: Script): Promise<unknown>;
  /**
   * Runs a script whose answer nobody waits for; when Redis cannot be had, as soon as it can. It may run
   * twice, and then must do no harm.
   */
  runLater(...script: Script): void;
  /** Resolves when Redis is there for the first time, or has not come within a second. */
  readonly ready: Promise<void>;
  close(): void;
}

/** All keys start with it. */
const KEY_PREFIX = "tributary:";

/** A request waits for four answers one after the other at most, and no longer than half a second for all. */
const ANSWER_TIMEOUT_MS = 120;
/** Beyond so many the oldest of the scripts that wait for Redis are forgotten. */
const MAX_WAITING_SCRIPTS = 10_000;
const READY_TIMEOUT_MS = 1_000;
const PROBE_MS = 100;
const RECONNECT_MAX_MS = 1_000;
/** A connection on which an answer is due and nothing comes for so long is replaced by a new one. */
const SILENT_CONNECTION_MS = 3_000;
/** Scripts can fail as often as there are requests. */
const LOG_FAILURES_EVERY_MS = 10_000;

/** Shows that Redis answers, and that it takes writes. */
const PROBE_SCRIPT = "return redis.call('SET', KEYS[1], '1', 'PX', 1000)";

const CONSEQUENCE = "limits, caches and locks are each replica's own until it is back";

/**
 * Redis at `url`, which may go away at any time. Whoever first gets no answer in time finds this out for
 * all: nobody else waits for it until a probe has been answered.
 */
export function createRedis({ url, log, registry }: { url: URL; log: Logger; registry: Registry }): Redis {
  const up = new Gauge({
    name: "tributary_redis_up",
    help: "1 while Redis answers; 0 while limits, caches and locks are this replica's own.",
    registers: [registry],
  });
  const failures = new Counter({
    name: "tributary_redis_failures_total",
    help: "Scripts that Redis has refused or not answered in time.",
    registers: [registry],
  });
  const client = new Client(url.href, {
    keyPrefix: KEY_PREFIX,
    enableOfflineQueue: false,
    // What was sent on a connection that broke is not sent again: nobody waits for it any more.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    socketTimeout: SILENT_CONNECTION_MS,
    retryStrategy: (attempts) => Math.min(50 * 2 ** attempts, RECONNECT_MAX_MS),
  });
  let isUp = false;
  let isClosed = false;
  const waiting: Script[] = [];
  let connectionError = "";
  let failureLoggedAt = -Infinity;

  // Of the client's errors only the message is logged: they carry the commands, and so the password.
  client.on("error", (error: NodeJS.ErrnoException) => {
    connectionError = error.message || (error.code ?? "");
  });
  client.on("close", () => {
    goDown("the connection was lost");
  });

  function goDown(reason: string): void {
    if (!isUp || isClosed) return;
    isUp = false;
    up.set(0);
    log.warn({ reason }, `Redis is away: ${CONSEQUENCE}`);
    void comeUp();
  }

  async function comeUp(): Promise<void> {
    while (!isClosed) {
      const answer = await answerOf(client.eval(PROBE_SCRIPT, 1, "probe"));
      if (answer instanceof Error) {
        await sleep(PROBE_MS, undefined, { ref: false });
        continue;
      }
      isUp = true;
      up.set(1);
      log.info("Redis is there");
      for (const script of waiting.splice(0)) runLater(...script);
      return;
    }
  }

  async function run(...[text, keys, args]: Script): Promise<unknown> {
    if (!isUp) return undefined;
    const answer = await answerOf(client.eval(text, keys.length, ...keys, ...args));
    if (!(answer instanceof Error)) return answer;
    failures.inc();
    if (!(answer instanceof ReplyError)) goDown(answer.message);
    else if (performance.now() - failureLoggedAt > LOG_FAILURES_EVERY_MS) {
      failureLoggedAt = performance.now();
      log.warn({ reason: answer.message }, `Redis refuses what it is asked: ${CONSEQUENCE}`);
    }
    return undefined;
  }

  /** In order: what waits is sent, on one connection, before anything that comes after Redis is back. */
  function runLater(...script: Script): void {
    void run(...script).then((answer) => {
      if (answer !== undefined) return;
      waiting.push(script);
      if (waiting.length > MAX_WAITING_SCRIPTS) waiting.shift();
    });
  }

  async function becomeReady(): Promise<void> {
    await Promise.race([comeUp(), sleep(READY_TIMEOUT_MS, undefined, { ref: false })]);
    if (!isUp) log.warn({ reason: connectionError }, `Redis has not come: ${CONSEQUENCE}`);
  }

  return {
    run,
    runLater,
    ready: becomeReady(),
    close() {
      isClosed = true;
      client.disconnect();
    },
  };
}

/** What a command came to, or an error when it has not been answered in time. */
function answerOf(command: Promise<unknown>): Promise<unknown> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      // When it was this process that was busy, the answer lies in the socket and is read before this runs.
      setImmediate(resolve, new Error(`no answer within ${ANSWER_TIMEOUT_MS} ms`));
    }, ANSWER_TIMEOUT_MS);
    command
      .catch((error: unknown) => error)
      .then((answer) => {
        clearTimeout(timer);
        resolve(answer);
      }, resolve);
  });
}
