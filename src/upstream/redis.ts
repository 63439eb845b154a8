import { setTimeout as sleep } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "@prometheus-io/client";
import { Redis as Client, ReplyError } from "ioredis";
import { z } from "zod";
import type { Logger } from "../observability/log.ts";

/** A Lua script, which Redis runs atomically, and the schema of its result. */
export interface Script<Answer> {
  readonly text: string;
  readonly answer: z.ZodType<Answer>;
}

type Arguments = [keys: readonly string[], args: readonly (string | number)[]];

/** The state that all replicas share. */
export interface Redis {
  /**
   * Runs a script in one round trip. Undefined when Redis is unavailable: at once while it is known to be
   * down, else after `answerTimeoutMs` at most, and then the script may still have run.
   */
  run<Answer>(script: Script<Answer>, ...args: Arguments): Promise<Answer | undefined>;
  /**
   * Runs a script without waiting for its result; while Redis is unavailable, as soon as it is back. The
   * script may run twice, so it must be idempotent.
   */
  runLater(script: Script<unknown>, ...args: Arguments): void;
  /** Resolves when Redis first answers, or after a second without an answer. */
  readonly ready: Promise<void>;
  close(): void;
}

/** The prefix of all keys. */
const KEY_PREFIX = "tributary:";

/** A collect waits for at most four answers in a row, so for half a second in all. */
const ANSWER_TIMEOUT_MS = 120;
/** Beyond this the oldest queued scripts are dropped. */
const MAX_QUEUED_SCRIPTS = 10_000;
const READY_TIMEOUT_MS = 1_000;
const PROBE_MS = 100;
const RECONNECT_MAX_MS = 1_000;
/** A connection that owes an answer and stays silent for this long, or for `answerTimeoutMs`, is replaced. */
const SILENT_CONNECTION_MS = 3_000;
/** A failing script fails for every request. */
const LOG_FAILURES_EVERY_MS = 10_000;

/** Checks that Redis answers and accepts writes. */
const PROBE: Script<"OK"> = {
  text: "return redis.call('SET', KEYS[1], '1', 'PX', 1000)",
  answer: z.literal("OK"),
};

/** Errors of one script and its keys. All others concern Redis itself: full, read-only, loading, forbidden. */
const SCRIPT_ERROR = /^(ERR|WRONGTYPE)\b/;

const CONSEQUENCE = "limits, caches and locks are each replica's own until it is back";

/**
 * Redis at `url`, which may become unavailable at any time. The first script without a timely answer marks it
 * as down, and nothing waits for it again until it answers a probe.
 */
export function createRedis({
  url,
  log,
  registry,
  answerTimeoutMs = ANSWER_TIMEOUT_MS,
}: {
  url: URL;
  log: Logger;
  registry: Registry;
  /** Tests that are not about it set one that no busy machine exceeds. */
  answerTimeoutMs?: number | undefined;
}): Redis {
  const up = new Gauge({
    name: "tributary_redis_up",
    help: "1 while Redis answers; 0 while limits, caches and locks are this replica's own.",
    registers: [registry],
  });
  const failures = new Counter({
    name: "tributary_redis_failures_total",
    help: "Scripts that Redis has refused, or not answered in time or as expected.",
    registers: [registry],
  });
  const client = new Client(url.href, {
    keyPrefix: KEY_PREFIX,
    enableOfflineQueue: false,
    // Scripts sent on a broken connection are not sent again: nobody waits for them any more.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    socketTimeout: Math.max(SILENT_CONNECTION_MS, answerTimeoutMs),
    retryStrategy: (attempts) => Math.min(50 * 2 ** attempts, RECONNECT_MAX_MS),
    // After a failover the name resolves to another server, but the connection is still to the old one.
    reconnectOnError: ({ message }) => message.startsWith("READONLY"),
  });
  let isUp = false;
  let isClosed = false;
  const queued: [Script<unknown>, ...Arguments][] = [];
  /** The last error of the connection. */
  let connectionError = "";
  let failureLoggedAt = -Infinity;

  // Only the message of the client's errors is logged: the errors hold commands, and with them the password.
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
    for (;;) {
      const answer = await ask(PROBE, ["probe"], []);
      if (isClosed) return;
      if (!(answer instanceof Error)) break;
      if (answer instanceof ReplyError) connectionError = answer.message;
      await sleep(PROBE_MS, undefined, { ref: false });
    }
    isUp = true;
    up.set(1);
    log.info("Redis is there");
    for (const script of queued.splice(0)) runLater(...script);
  }

  async function becomeReady(): Promise<void> {
    await Promise.race([comeUp(), sleep(READY_TIMEOUT_MS, undefined, { ref: false })]);
    if (!isUp) log.warn({ reason: connectionError }, `Redis has not come: ${CONSEQUENCE}`);
  }

  /** The script's result, or an error when there is none in time. */
  function ask({ text }: Script<unknown>, ...[keys, args]: Arguments): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => {
      // If this process was busy, the answer is already in the socket and is read before this runs.
      setImmediate(resolve, new Error(`no answer within ${answerTimeoutMs} ms`));
    }, answerTimeoutMs);
    client.eval(text, keys.length, ...keys, ...args).then(resolve, resolve);
    return promise.finally(() => {
      clearTimeout(timer);
    });
  }

  async function run<Answer>(script: Script<Answer>, ...args: Arguments): Promise<Answer | undefined> {
    if (!isUp) return undefined;
    const answer = await ask(script, ...args);
    const failure = answer instanceof Error ? answer : script.answer.safeParse(answer).error;
    if (!failure) return answer as Answer;
    failures.inc();
    if (failure === answer && !SCRIPT_ERROR.test(failure.message)) goDown(failure.message);
    else warnAboutFailure(failure.message);
    return undefined;
  }

  function warnAboutFailure(reason: string): void {
    if (performance.now() - failureLoggedAt < LOG_FAILURES_EVERY_MS) return;
    failureLoggedAt = performance.now();
    log.warn({ reason }, "Redis has failed at something that the replica now does by itself");
  }

  /** Keeps the order: queued scripts are sent, on one connection, before any later one. */
  function runLater(...script: [Script<unknown>, ...Arguments]): void {
    void run(...script).then((answer) => {
      if (answer !== undefined) return;
      queued.push(script);
      if (queued.length > MAX_QUEUED_SCRIPTS) queued.shift();
    });
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
