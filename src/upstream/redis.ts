import { setTimeout as sleep } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "@prometheus-io/client";
import { Redis as Client, ReplyError } from "ioredis";
import { z } from "zod";
import type { Logger } from "../observability/log.ts";

/** A Lua script, which Redis runs atomically, with the schema of its result. */
export interface Script<Answer> {
  readonly text: string;
  readonly answer: z.ZodType<Answer>;
}

type Arguments = [keys: readonly string[], args: readonly (string | number)[]];

/** The state that all replicas share. */
export interface Redis {
  /** Whether it is a Redis Cluster, where all keys of a script must have the same hash tag. */
  readonly isCluster?: boolean;
  /**
   * Runs a script in one round trip. Returns undefined if Redis is unavailable: at once if it is known to be
   * down, otherwise after at most `answerTimeoutMs`; in that case the script may still have run.
   */
  run<Answer>(script: Script<Answer>, ...args: Arguments): Promise<Answer | undefined>;
  /**
   * Runs a script without waiting for its result. While Redis is unavailable, queues it. The script may run
   * twice, so it must be idempotent.
   */
  runLater(script: Script<unknown>, ...args: Arguments): void;
  /** Resolves when Redis first answers, or after a second without an answer. */
  readonly ready: Promise<void>;
  close(): void;
}

/** The prefix of all keys. */
const KEY_PREFIX = "tributary:";

/** A collect waits for at most four answers in sequence, so for at most half a second. */
const ANSWER_TIMEOUT_MS = 120;
/** Beyond this the oldest queued scripts are dropped. */
const MAX_QUEUED_SCRIPTS = 10_000;
const READY_TIMEOUT_MS = 1_000;
const PROBE_MS = 100;
const RECONNECT_MAX_MS = 1_000;
/** A connection is replaced if an answer is due and nothing arrives for this long, or `answerTimeoutMs` if longer. */
const SILENT_CONNECTION_MS = 3_000;
/** A failing script fails on every request, so its failures are logged only this often. */
const LOG_FAILURES_EVERY_MS = 10_000;

/** Checks that Redis answers and accepts writes. */
const PROBE: Script<"OK"> = {
  text: "return redis.call('SET', KEYS[1], '1', 'PX', 1000)",
  answer: z.literal("OK"),
};

/** Errors of one script or its keys. All others concern Redis itself: full, read-only, loading, forbidden. */
const SCRIPT_ERROR = /^(ERR|WRONGTYPE)\b/;

const CONSEQUENCE = "until it answers, this replica shares no limits, caches or locks";

/**
 * Connects to Redis at `url`, which may become unavailable at any time. The first script without a timely answer
 * marks it as down. Nothing waits for it again until it answers a probe.
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
  /** Tests that do not test this timeout raise it, because a busy machine could exceed it. */
  answerTimeoutMs?: number | undefined;
}): Redis {
  const up = new Gauge({
    name: "tributary_redis_up",
    help: "1 while Redis answers; 0 while this replica shares no limits, caches or locks.",
    registers: [registry],
  });
  const failures = new Counter({
    name: "tributary_redis_failures_total",
    help: "Scripts that failed: refused by Redis, not answered in time, or answered unexpectedly.",
    registers: [registry],
  });
  const client = new Client(url.href, {
    keyPrefix: KEY_PREFIX,
    enableOfflineQueue: false,
    // Do not resend the scripts of a broken connection: their callers no longer wait.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    socketTimeout: Math.max(SILENT_CONNECTION_MS, answerTimeoutMs),
    retryStrategy: (attempts) => Math.min(50 * 2 ** attempts, RECONNECT_MAX_MS),
    // After a failover the name resolves to another server, but the connection still goes to the old one.
    reconnectOnError: ({ message }) => message.startsWith("READONLY"),
  });
  let isUp = false;
  let isClosed = false;
  const queued: [Script<unknown>, ...Arguments][] = [];
  /** The last error of the connection. */
  let connectionError = "";
  let failureLoggedAt = -Infinity;

  // Log only the message of the client's errors: the errors contain commands, and so the password.
  client.on("error", (error: NodeJS.ErrnoException) => {
    connectionError = error.message || (error.code ?? "");
  });
  client.on("close", () => {
    markDown("the connection was lost");
  });

  function markDown(reason: string): void {
    if (!isUp || isClosed) return;
    isUp = false;
    up.set(0);
    log.warn({ reason }, `Redis is unavailable: ${CONSEQUENCE}`);
    void probeUntilUp();
  }

  async function probeUntilUp(): Promise<void> {
    for (;;) {
      const answer = await ask(PROBE, ["probe"], []);
      if (isClosed) return;
      if (!(answer instanceof Error)) break;
      if (answer instanceof ReplyError) connectionError = answer.message;
      await sleep(PROBE_MS, undefined, { ref: false });
    }
    isUp = true;
    up.set(1);
    log.info("Redis is available");
    for (const script of queued.splice(0)) runLater(...script);
  }

  async function waitForFirstAnswer(): Promise<void> {
    await Promise.race([probeUntilUp(), sleep(READY_TIMEOUT_MS, undefined, { ref: false })]);
    if (!isUp) log.warn({ reason: connectionError }, `Redis is not available yet: ${CONSEQUENCE}`);
  }

  /** Resolves to the script's result, or to an Error; never rejects. */
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
    if (failure === answer && !SCRIPT_ERROR.test(failure.message)) markDown(failure.message);
    else warnAboutFailure(failure.message);
    return undefined;
  }

  function warnAboutFailure(reason: string): void {
    if (performance.now() - failureLoggedAt < LOG_FAILURES_EVERY_MS) return;
    failureLoggedAt = performance.now();
    log.warn({ reason }, "a Redis script failed: this replica continues without its result");
  }

  /** Keeps the order: queued scripts are sent before later ones, on one connection. */
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
    ready: waitForFirstAnswer(),
    close() {
      isClosed = true;
      client.disconnect();
    },
  };
}
