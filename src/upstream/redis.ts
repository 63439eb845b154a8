import { setTimeout as sleep } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "@prometheus-io/client";
import { Redis as Client, ReplyError } from "ioredis";
import { z } from "zod";
import type { Logger } from "../observability/log.ts";

/** A Lua script, which Redis runs as a whole or not at all, and what it answers. */
export interface Script<Answer> {
  readonly text: string;
  readonly answer: z.ZodType<Answer>;
}

type Arguments = [keys: readonly string[], args: readonly (string | number)[]];

/** What all replicas share. */
export interface Redis {
  /**
   * Runs a script in one round trip. Undefined when Redis cannot be had: at once while it is known to be
   * away, else after `answerTimeoutMs` at most; the script may have run all the same.
   */
  run<Answer>(script: Script<Answer>, ...args: Arguments): Promise<Answer | undefined>;
  /**
   * Runs a script whose answer nobody waits for; when Redis cannot be had, as soon as it can. It may run
   * twice, and then must do no harm.
   */
  runLater(script: Script<unknown>, ...args: Arguments): void;
  /** Resolves when Redis is there for the first time, or has not come within a second. */
  readonly ready: Promise<void>;
  close(): void;
}

/** All keys start with it. */
const KEY_PREFIX = "tributary:";

/** A collect waits for four answers one after the other at most, and no longer than half a second for all. */
const ANSWER_TIMEOUT_MS = 120;
/** Beyond so many the oldest of the scripts that wait for Redis are forgotten. */
const MAX_WAITING_SCRIPTS = 10_000;
const READY_TIMEOUT_MS = 1_000;
const PROBE_MS = 100;
const RECONNECT_MAX_MS = 1_000;
/** A connection on which an answer is due and nothing comes for so long, or for `answerTimeoutMs`, is replaced by a new one. */
const SILENT_CONNECTION_MS = 3_000;
/** Scripts can fail as often as there are requests. */
const LOG_FAILURES_EVERY_MS = 10_000;

/** Shows that Redis answers, and that it takes writes. */
const PROBE: Script<"OK"> = {
  text: "return redis.call('SET', KEYS[1], '1', 'PX', 1000)",
  answer: z.literal("OK"),
};

/** Errors that speak of a script and its keys. All others speak of Redis: full, read-only, loading, forbidden. */
const IS_OF_SCRIPT = /^(ERR|WRONGTYPE)\b/;

const CONSEQUENCE = "limits, caches and locks are each replica's own until it is back";

/**
 * Redis at `url`, which may go away at any time. Whoever first gets no answer in time finds this out for
 * all: nobody else waits for it until a probe has been answered.
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
    // What was sent on a connection that broke is not sent again: nobody waits for it any more.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    socketTimeout: Math.max(SILENT_CONNECTION_MS, answerTimeoutMs),
    retryStrategy: (attempts) => Math.min(50 * 2 ** attempts, RECONNECT_MAX_MS),
    // After a fail-over the name leads to another server, but the connection still to the old one.
    reconnectOnError: ({ message }) => message.startsWith("READONLY"),
  });
  let isUp = false;
  let isClosed = false;
  const waiting: [Script<unknown>, ...Arguments][] = [];
  /** Why there is no connection, as far as is known. */
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
    for (const script of waiting.splice(0)) runLater(...script);
  }

  async function becomeReady(): Promise<void> {
    await Promise.race([comeUp(), sleep(READY_TIMEOUT_MS, undefined, { ref: false })]);
    if (!isUp) log.warn({ reason: connectionError }, `Redis has not come: ${CONSEQUENCE}`);
  }

  /** The script's answer, or an error when there is none in time. */
  function ask({ text }: Script<unknown>, ...[keys, args]: Arguments): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => {
      // When it was this process that was busy, the answer lies in the socket and is read before this runs.
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
    if (failure === answer && !IS_OF_SCRIPT.test(failure.message)) goDown(failure.message);
    else warnOfFailure(failure.message);
    return undefined;
  }

  function warnOfFailure(reason: string): void {
    if (performance.now() - failureLoggedAt < LOG_FAILURES_EVERY_MS) return;
    failureLoggedAt = performance.now();
    log.warn({ reason }, "Redis has failed at something that the replica now does by itself");
  }

  /** In order: what waits is sent, on one connection, before anything that comes after Redis is back. */
  function runLater(...script: [Script<unknown>, ...Arguments]): void {
    void run(...script).then((answer) => {
      if (answer !== undefined) return;
      waiting.push(script);
      if (waiting.length > MAX_WAITING_SCRIPTS) waiting.shift();
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
