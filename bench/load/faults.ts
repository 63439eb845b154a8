import { setTimeout as sleep } from "node:timers/promises";
import type { LoopbackServer } from "../../src/sandbox/loopback-server.ts";
import { answerJsonRpc, type Methods } from "../../src/sandbox/rpc/json-rpc.ts";
import { REFUSES_VERSION_1 } from "../../src/sandbox/rpc/refuse-version-1.ts";
import { isMethod } from "../../test/support/sandbox.ts";
import type { ChainCall, Endpoint } from "./endpoints.ts";
import type { Lie } from "./lies.ts";
import type { Problems } from "./problems.ts";
import { begin, end } from "./replica.ts";
import type { System } from "./system.ts";

type Fault = Parameters<LoopbackServer<unknown>["faults"]["add"]>[0];

/** The fraction of matching calls that faults of both endpoints and of the network affect. */
const FAULT_RATE = 0.7;
/** More than the 150 blocks in which a blockhash is valid and the 32 slots to finality together. */
export const SLOTS_PAST_BLOCKHASH = 200;
/** How long it takes until a stale endpoint is over, or recognized, and replicas believe the others' slots. */
const BELIEVED_AFTER_MS = 5_000;
const SHORT_FAULT_MS = 600;
/** Longer than two seconds, after which the gateway resends a transaction and checks whether it has expired. */
const LONG_FAULT_MS = 3_000;
/** How long after the start of such a fault its blockhash expires. */
const EXPIRES_AFTER_MS = 700;
/** How long a node that claims to be ahead does so: longer than an endpoint that lags keeps the reads. */
const AHEAD_MS = 12_000;
/** Until the preferred endpoint no longer backs off after the fault before. */
const RECOVERED_MS = 3_000;
/** The part of the reads that such a node may get: only to see how it is. */
const MAX_READS_AHEAD = 0.1;
/** How long an endpoint closes connections before the lies of the other, or before it belongs to another cluster. */
const OUTAGE_MS = 300;
/** How long confirmed slots stand still while the cluster migrates. */
const MIGRATION_MS = 15_000;
/** How soon after it lookups must work. */
const SERVED_MS = 10_000;
/** In lamports per byte. */
const LOWER_RENTS = [2_575, 1_322];
/** How slow Redis is between two freezes: each command still takes less than the 120 ms that the gateway waits. */
const MOST_SLOW_REDIS_MS = 50;
const SLOW_REDIS_MS = [0, 30, 0, MOST_SLOW_REDIS_MS];

/** How long Redis freezes: some shorter than the 120 ms that the gateway waits, some longer. */
const FREEZES_MS = [80, 2_500, 60, 600, 100, 4_000, 300];
const FREEZE_EVERY_MS = 2_500;
/** How long the replica runs before it is killed. */
const KILLS_AFTER_MS = [2_000, 5_000, 1_000, 3_500];
const DOWN_MS = 500;
const POLL_MS = 50;

const answerWith = (status: number, headers: Record<string, string> = {}) => ({ status, headers, body: "" });

/** Faults of any upstream. */
const FAULTS: Record<string, () => Fault> = {
  "no answer": () => ({ then: "hang" }),
  reset: () => ({ then: "reset" }),
  slow: () => ({ delayMs: 300 }),
  "cut short": () => ({ then: "cut" }),
  429: () => ({
    then: answerWith(429, {
      "x-rate-limit-reset": String(Math.ceil(Date.now() / 1000) + 1),
      "retry-after": "1",
    }),
  }),
  500: () => ({ then: answerWith(500) }),
};

/** The node executes the transaction, but the response is lost. */
const RESPONSE_LOST: Fault = { then: "reset", after: true };
/** The node accepts the transaction, but drops it. */
const TRANSACTION_DROPPED: Fault = {
  then: ({ body }) => ({ status: 200, body: answerJsonRpc(body, { sendTransaction: () => "x" }) }),
};

/** A fault that the run injects for some time. */
interface Scenario {
  readonly name: string;
  /** Injects the fault; returns a function that removes it. */
  readonly start: () => () => void;
  /** A transaction may expire while the fault lasts, so it lasts longer than a blockhash lives. */
  readonly isLong?: boolean | undefined;
  /** How long the fault lasts otherwise; SHORT_FAULT_MS by default. */
  readonly ms?: number | undefined;
  /** How long no endpoint fails before the fault. */
  readonly quietMs?: number | undefined;
  /** An endpoint that fails for a moment, before the fault. */
  readonly failsBefore?: Endpoint | undefined;
  /** No replica may start meanwhile: of two endpoints that differ, it cannot know the right one. */
  readonly isAmbiguous?: boolean | undefined;
}

const stopAll = (stops: (() => void)[]) => () => {
  for (const stop of stops) stop();
};

/** The faults of the chain. At most one endpoint lies at a time; only honest faults concern both. */
function chainScenarios(system: System, problems: Problems): Scenario[] {
  const { endpoints, lies, ratchet, replicas, stale, random, activity, feePayer } = system;
  const { chain } = system.sandbox;
  const sometimes = () => random.isChosen(FAULT_RATE);
  const onBoth = (fault: Fault, when: (call: { method: string }) => boolean = () => true) =>
    stopAll(endpoints.map(({ faults }) => faults.add({ ...fault, when })));

  function startLie(endpoint: Endpoint, { methods, isStale, movesFirst }: Lie): () => void {
    const stops = [endpoint.lie(methods)];
    if (movesFirst) {
      // For each replica from its first call on, because one that calls only later would not notice the move.
      const firstCalls = new Map<number, number>();
      const isInOutage = ({ replica }: ChainCall) => {
        const firstAt = firstCalls.get(replica) ?? Date.now();
        firstCalls.set(replica, firstAt);
        return Date.now() < firstAt + OUTAGE_MS;
      };
      stops.push(endpoint.faults.add({ then: "reset", when: isInOutage }));
    }
    if (isStale) {
      begin(stale);
      stops.push(() => {
        end(stale);
      });
    }
    return stopAll(stops);
  }

  /** Until the returned function is called, nearly all reads must go to the first endpoint, unless it fails. */
  function limitReads(): () => void {
    const startedAt = Date.now();
    const before = endpoints.map(({ reads }) => reads());
    return () => {
      const [first, second] = endpoints.map(({ reads }, i) => reads() - before[i]!) as [number, number];
      // On a busy machine it may not answer in time.
      if (replicas.some(({ endpointFailedAt }) => endpointFailedAt() >= startedAt)) return;
      if (second > MAX_READS_AHEAD * (first + second))
        problems.add("a node that claims to be ahead got the reads", `${second} of ${first + second}`);
    };
  }

  /** Something for each endpoint: first alternating between the two, then the other way round. */
  const atBoth = <T>(list: readonly T[], toScenario: (one: T, endpoint: 0 | 1) => Scenario) =>
    ([0, 1] as const).flatMap((swapped) =>
      list.map((one, i) => {
        const endpoint = (i + swapped) % 2 === 0 ? 0 : 1;
        const scenario = toScenario(one, endpoint);
        return { ...scenario, name: `endpoint ${endpoint + 1}: ${scenario.name}` };
      }),
    );
  const liesOfOne = atBoth(lies, (lie, endpoint) => ({
    name: lie.name,
    start: () => startLie(endpoints[endpoint], lie),
    isLong: lie.isLong,
    isAmbiguous: lie.movesFirst,
    // The second endpoint is asked only while the first backs off.
    failsBefore: endpoint === 1 ? endpoints[0] : undefined,
  }));
  const refusal = ["version 1 refused", () => REFUSES_VERSION_1] as const;
  const faultsOfOne = atBoth([...Object.entries(FAULTS), refusal], ([name, fault], endpoint) => ({
    name,
    start: () => endpoints[endpoint].faults.add(fault()),
  }));
  const isSend = isMethod("sendTransaction");
  const ofBoth: Scenario[] = [
    {
      name: "transactions: executed, but the response is lost",
      start: () => onBoth(RESPONSE_LOST, (call) => isSend(call) && sometimes()),
    },
    {
      name: "transactions: dropped until they expire",
      start: () => onBoth(TRANSACTION_DROPPED, isSend),
      isLong: true,
    },
    {
      name: "transactions: landed, but their status is unavailable",
      start: () => onBoth({ then: "reset" }, isMethod("getSignatureStatuses")),
      isLong: true,
    },
    {
      name: "transactions: accepted, but dropped",
      start: () => onBoth(TRANSACTION_DROPPED, (call) => isSend(call) && sometimes()),
    },
    ...Object.entries(FAULTS).map(([name, fault]) => ({
      name: `both endpoints: ${name}`,
      start: () => onBoth(fault(), sometimes),
    })),
  ];
  /** Empties the fee payer just before a transaction lands. */
  const withoutFeePayer = (honest: Methods): Methods => ({
    ...honest,
    sendTransaction(params) {
      const balance = chain.balance(feePayer);
      chain.setBalance(feePayer, 0n);
      try {
        return honest.sendTransaction!(params);
      } finally {
        chain.setBalance(feePayer, balance);
      }
    },
  });

  /** All transactions of the time are dropped. */
  function migrate(): () => void {
    system.isMigrating = true;
    const finish = chain.migrateToAlpenglow();
    return () => {
      finish();
      system.isMigrating = false;
      const endedAt = Date.now();
      setTimeout(() => {
        if (activity.lastBalanceAt < endedAt)
          problems.add("no balance was shown after the cluster migrated", `within ${SERVED_MS} ms`);
      }, SERVED_MS).unref();
    };
  }
  const ofCluster: Scenario[] = [
    {
      name: "transactions: landed, but the fee payer could not pay",
      start: () => stopAll(endpoints.map((endpoint) => endpoint.lie(withoutFeePayer))),
    },
    ...LOWER_RENTS.map((lamportsPerByte) => ({
      name: `rent of ${lamportsPerByte} lamports per byte`,
      start() {
        system.setRent(lamportsPerByte);
        return () => undefined;
      },
    })),
    { name: "the cluster migrates to Alpenglow", start: migrate, ms: MIGRATION_MS },
    {
      name: "both endpoints: version 1 refused",
      start: () => stopAll(endpoints.map(({ faults }) => faults.add(REFUSES_VERSION_1))),
    },
  ];
  const ahead: Scenario = {
    name: `endpoint 2: ${ratchet.name}`,
    quietMs: RECOVERED_MS,
    ms: AHEAD_MS,
    start: () => stopAll([startLie(endpoints[1], ratchet), limitReads()]),
  };
  return [...takeTurns(liesOfOne, ofBoth, faultsOfOne, ofCluster), ahead];
}

/** The first of each group, then the second of each, and so on: even a short run has some of each group. */
function takeTurns<T>(...groups: (readonly T[])[]): T[] {
  const rounds = Math.max(...groups.map(({ length }) => length));
  return Array.from({ length: rounds }, (_, i) => groups.flatMap((group) => group.slice(i, i + 1))).flat();
}

async function sleepUnless(isOver: () => boolean, ms: number): Promise<void> {
  const endsAt = performance.now() + ms;
  while (!isOver() && performance.now() < endsAt) await sleep(POLL_MS);
}

/** Injects faults of the chain, the network, Redis and the replicas, each kind of them in a fixed order that repeats. */
export function createFaultSchedule(system: System, problems: Problems) {
  const { sandbox, redis, slowRedis, replicas, frozen, skipped, random, alternates, advanceSlots } = system;
  const ofChain = chainScenarios(system, problems);
  const ofNetwork = Object.entries(FAULTS).map(([name, fault]): Scenario => ({
    name: `the network: ${name}`,
    start: () => sandbox.social.faults.add({ ...fault(), when: () => random.isChosen(FAULT_RATE) }),
  }));
  const injected = new Set<string>();
  const counts = { freezes: 0, kills: 0 };
  const position = new Map<readonly Scenario[], number>();
  let isStarting = false;
  let isAmbiguous = false;

  async function inject(
    scenarios: readonly Scenario[],
    pauseMs: number,
    isOver: () => boolean,
  ): Promise<void> {
    while (!isOver()) {
      const next = position.get(scenarios) ?? 0;
      position.set(scenarios, next + 1);
      const scenario = scenarios[next % scenarios.length]!;
      const { name, start, isLong, failsBefore, ms = SHORT_FAULT_MS, quietMs = 0 } = scenario;
      while (scenario.isAmbiguous && isStarting) await sleep(POLL_MS);
      isAmbiguous ||= scenario.isAmbiguous ?? false;
      injected.add(name);
      await sleep(quietMs);
      const endOutage = failsBefore?.faults.add({ then: "reset" });
      if (endOutage) await sleep(OUTAGE_MS);
      endOutage?.();
      const stop = start();
      if (isLong) {
        await sleep(EXPIRES_AFTER_MS);
        advanceSlots(SLOTS_PAST_BLOCKHASH);
        skipped.push({ from: Date.now(), to: Date.now() + BELIEVED_AFTER_MS });
        await sleep(LONG_FAULT_MS - EXPIRES_AFTER_MS);
      } else await sleep(ms);
      stop();
      if (scenario.isAmbiguous) isAmbiguous = false;
      await sleepUnless(isOver, pauseMs);
    }
  }

  async function freezeRedis(isOver: () => boolean): Promise<void> {
    for (;;) {
      slowRedis.slowDown(
        alternates ? MOST_SLOW_REDIS_MS : SLOW_REDIS_MS[counts.freezes % SLOW_REDIS_MS.length]!,
      );
      await sleepUnless(isOver, FREEZE_EVERY_MS);
      slowRedis.slowDown(0);
      if (isOver()) return;
      begin(frozen);
      redis.freeze();
      await sleep(FREEZES_MS[counts.freezes++ % FREEZES_MS.length]);
      redis.thaw();
      end(frozen);
    }
  }

  /** Kills only the second replica, so that the memory of the first can be compared. */
  async function killReplica(isOver: () => boolean): Promise<void> {
    for (;;) {
      await sleepUnless(isOver, KILLS_AFTER_MS[counts.kills % KILLS_AFTER_MS.length]!);
      if (isOver()) return;
      counts.kills++;
      await replicas[1].kill();
      await sleep(DOWN_MS);
      while (isAmbiguous) await sleep(POLL_MS);
      isStarting = true;
      await replicas[1].start();
      while (!(await replicas[1].isReady())) await sleep(POLL_MS);
      isStarting = false;
    }
  }

  return {
    /** Injects faults until `isOver`, and removes them all. */
    async run(isOver: () => boolean): Promise<void> {
      await Promise.all([
        inject(ofChain, SHORT_FAULT_MS / 4, isOver),
        inject(ofNetwork, 2 * SHORT_FAULT_MS, isOver),
        freezeRedis(isOver),
        killReplica(isOver),
      ]);
    },
    kinds: new Set([...ofChain, ...ofNetwork].map(({ name }) => name)).size,
    injected,
    counts,
  };
}
