import { setTimeout as sleep } from "node:timers/promises";
import { Counter, Gauge, type Registry } from "@prometheus-io/client";
import type { Logger } from "../observability/log.ts";
import { createWarnings, type Warnings } from "../observability/warnings.ts";
import { createConnection, type Listener } from "./redis-connection.ts";
import { describeOutage } from "./redis-remedies.ts";
import type { Script } from "./script.ts";
import {
  addMs,
  msUntil,
  LONG_AGO,
  monotonicNow,
  type MonotonicTime,
  msSince,
  NEVER,
} from "../time/monotonic.ts";

export type Redis = ReturnType<typeof createRedis>;

/** How long one script may take before Redis is marked as down. */
const ANSWER_TIMEOUT_MS = 120;
const READY_TIMEOUT_MS = 1_000;
const PROBE_MS = 100;
/** A failing script fails on every request, so failures are logged only this often. */
const LOG_FAILURES_EVERY_MS = 10_000;

/**
 * Errors of one script or its keys. All other errors concern Redis itself: full, read-only,
 * loading, forbidden.
 */
const SCRIPT_ERROR = /^(ERR|WRONGTYPE|CROSSSLOT)\b/;

/** The subject of the warning while Redis is down. */
export const REDIS_SUBJECT = "redis";

/**
 * The state that all replicas share, in one Redis server or in a Redis Cluster.
 * Connects to the Redis server or Redis Cluster at one URL, or to the Redis Cluster with nodes at
 * several URLs.
 * Redis may become unavailable at any time. The first script without a timely answer marks all of
 * Redis as down. From then on, no script waits for Redis until the server, or each master of the
 * cluster, answers a probe.
 */
export function createRedis(needs: {
  urls: readonly URL[];
  log: Logger;
  warnings?: Warnings;
  registry: Registry;
  /** Tests that do not test this timeout raise it, because a busy machine could exceed it. */
  answerTimeoutMs?: number | undefined;
}) {
  const { urls, log, registry } = needs;
  const { warnings = createWarnings(log), answerTimeoutMs = ANSWER_TIMEOUT_MS } = needs;
  new Gauge({
    name: "tributary_redis_up",
    help: "1 while Redis answers; 0 while this replica shares no limits, caches or locks.",
    registers: [registry],
    collect() {
      this.set(state === "up" ? 1 : 0);
    },
  });
  const failures = new Counter({
    name: "tributary_redis_failures_total",
    help: "Scripts that failed: refused by Redis, not answered in time, or answered unexpectedly.",
    registers: [registry],
  });
  const connection = createConnection({
    urls,
    answerTimeoutMs,
    onLost: () => {
      markDown("the connection was lost");
    },
  });
  const onReconnects: (() => void)[] = [];
  let state: "down" | "up" | "closed" = "down";
  /** Resolves once Redis is up, or closed. */
  let notDown = Promise.withResolvers<undefined>();
  let unwritten = 0;
  let failureLoggedAt = LONG_AGO;

  function warn(state: string, reason: string): void {
    const details = { reason: reason || "it does not answer" };
    warnings.raise(REDIS_SUBJECT, `${state}: ${describeOutage(reason, urls[0]!)}`, { details });
  }

  function markDown(reason: string): void {
    if (state !== "up") return;
    state = "down";
    notDown = Promise.withResolvers();
    warn("Redis is unavailable", reason);
    void probeUntilUp();
  }

  async function probeUntilUp(): Promise<void> {
    while (!(await connection.probe())) {
      if (state === "closed") return;
      await sleep(PROBE_MS, undefined, { ref: false });
    }
    if (state === "closed") return;
    state = "up";
    if (warnings.has(REDIS_SUBJECT)) warnings.clear(REDIS_SUBJECT, "Redis is available");
    else log.info("Redis is available");
    notDown.resolve(undefined);
    // Scripts that have waited run first.
    await notDown.promise;
    for (const onReconnect of onReconnects) onReconnect();
  }

  async function waitForFirstAnswer(): Promise<void> {
    await Promise.race([probeUntilUp(), sleep(READY_TIMEOUT_MS, undefined, { ref: false })]);
    if (state !== "up") warn("Redis is not available yet", connection.reason());
  }

  async function attempt<Call, Answer>(
    script: Script<Call, Answer>,
    call: Call,
  ): Promise<{ readonly answer: Answer } | "unavailable" | "failed"> {
    if (state !== "up") return "unavailable";
    const reply = await connection.evaluate(script.text, script.toArguments(call));
    const answer =
      reply instanceof Error
        ? ({ success: false, error: reply } as const)
        : script.answer.safeParse(reply);
    if (answer.success) return { answer: answer.data };
    const failure = answer.error;
    failures.inc();
    if (failure === reply && !SCRIPT_ERROR.test(failure.message)) {
      markDown(failure.message);
      return "unavailable";
    }
    if (msSince(failureLoggedAt) >= LOG_FAILURES_EVERY_MS) {
      failureLoggedAt = monotonicNow();
      log.warn(
        { reason: failure.message },
        "a Redis script failed and is ignored: check that Redis is version 7 or later",
      );
    }
    return "failed";
  }

  /**
   * Runs a script, again after each outage, until `endsAt`. Scripts with the same keys run in order:
   * they are sent on one connection, those that have waited first.
   */
  async function runUntilDone<Call>(
    script: Script<Call, unknown>,
    call: Call,
    endsAt: MonotonicTime,
  ): Promise<void> {
    while (state !== "closed" && monotonicNow() < endsAt) {
      if ((await attempt(script, call)) !== "unavailable") return;
      const ends =
        endsAt < NEVER ? [sleep(Math.max(0, msUntil(endsAt)), undefined, { ref: false })] : [];
      await Promise.race([notDown.promise, ...ends]);
    }
  }

  function close(): void {
    state = "closed";
    notDown.resolve(undefined);
    connection.close();
  }

  return {
    /**
     * Runs a script in one round trip. Returns undefined if the script fails, if its result does
     * not match the schema, or if Redis is unavailable: at once if Redis is marked as down,
     * otherwise after at most `answerTimeoutMs`. A script without a result may have run, or may
     * still run, but never twice.
     */
    async run<Call, Answer>(
      script: Script<Call, Answer>,
      call: NoInfer<Call>,
    ): Promise<Answer | undefined> {
      const result = await attempt(script, call);
      return typeof result === "object" ? result.answer : undefined;
    },
    /**
     * Runs a script without waiting for its result, or queues it while Redis is unavailable. The
     * script may run twice, so it must be idempotent. A failure is logged and not retried. With
     * `keptMs`, the script is dropped after that time, and does not count in `unwritten`. Use it for
     * paid transactions only: the fee budget limits how many wait.
     */
    runLater<Call>(script: Script<Call, unknown>, call: NoInfer<Call>, keptMs = Infinity): void {
      const count = keptMs === Infinity ? 1 : 0;
      unwritten += count;
      const endsAt = addMs(monotonicNow(), keptMs);
      void runUntilDone(script, call, endsAt).then(() => {
        unwritten -= count;
      });
    },
    /** The number of `runLater` scripts without `keptMs` that have not run. */
    unwritten: () => unwritten,
    /** Resolves when `unwritten` is 0, or after `timeoutMs`. */
    async flush(timeoutMs: number): Promise<void> {
      const deadline = addMs(monotonicNow(), timeoutMs);
      while (unwritten > 0 && monotonicNow() < deadline) await sleep(PROBE_MS);
    },
    /**
     * Receives messages on the channel `name`. A script with the key `name` can publish to it.
     */
    subscribe(name: string, listener: Listener): void {
      if (state === "closed") return;
      onReconnects.push(listener.onReconnect);
      connection.subscribe(name, listener);
    },
    /** Resolves when Redis first answers, or after a second. */
    ready: waitForFirstAnswer(),
    /** Why Redis is unavailable; empty if it has not answered. */
    reason: connection.reason,
    isUp: () => state === "up",
    close,
  };
}
