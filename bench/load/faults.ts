import { setTimeout as sleep } from "node:timers/promises";
import type { Fault as FaultOf } from "../../test/support/faults.ts";
import { answerJsonRpc, type Methods } from "../../src/sandbox/rpc/json-rpc.ts";
import { REFUSES_VERSION_1 } from "../../test/support/refuse-version-1.ts";
import { isMethod } from "../../test/support/sandbox.ts";
import type { BadNode } from "./bad-nodes.ts";
import type { ChainCall, Endpoint } from "./endpoints.ts";
import type { Problems } from "./problems.ts";
import { begin, end } from "./replica.ts";
import type { System } from "./system.ts";

type Fault = FaultOf<unknown>;

/**
 * A fault of all endpoints, or of the social network, affects this fraction of the matching calls.
 */
const FAULT_RATE = 0.7;
/** More than the 150 blocks for which a blockhash is valid. */
export const SLOTS_PAST_BLOCKHASH = 200;
/**
 * How long after skipped slots a replica may use a stale endpoint, or reject the new slots of the
 * other endpoint.
 */
const BELIEVED_AFTER_MS = 5_000;
const SHORT_FAULT_MS = 600;
/**
 * Longer than two seconds, after which the gateway resends a transaction and checks whether it has
 * expired.
 */
const LONG_FAULT_MS = 3_000;
/** How long after the start of a long fault all earlier blockhashes expire. */
const EXPIRES_AFTER_MS = 700;
/** How long an endpoint closes connections before it, or another one, has a bad node. */
const OUTAGE_MS = 300;
/** How long the cluster stands still. Then all endpoints' states look old for as long. */
const STILL_MS = 18_000;
/** How soon after the standstill lookups must work. */
const SERVED_MS = 10_000;
/** In lamports per byte. */
const LOWER_RENTS = [2_575, 1_322];
/**
 * Redis's delays between freezes. A command still takes less than the 120 ms that the gateway
 * waits.
 */
export const MOST_SLOW_REDIS_MS = 50;
const SLOW_REDIS_MS = [0, 30, 0, MOST_SLOW_REDIS_MS];

/**
 * The durations of Redis's freezes: some are below the 120 ms that the gateway waits, some above.
 */
const FREEZES_MS = [80, 2_500, 60, 600, 100, 4_000, 300];
const FREEZE_EVERY_MS = 2_500;
const FREEZE = "Redis frozen";
const KILL = "replica 1 killed";
/** How long the second replica runs before it is killed. */
const KILLS_AFTER_MS = [2_000, 5_000, 1_000, 3_500];
const DOWN_MS = 500;
const POLL_MS = 50;

const answerWith = (status: number, headers: Record<string, string> = {}) => ({
  status,
  headers,
  body: "",
});

/** Faults of any upstream. */
const FAULTS: Record<string, () => Fault> = {
  "no answer": () => ({ then: "hang" }),
  reset: () => ({ then: "reset" }),
  slow: () => ({ delayMs: 300 }),
  "cut short": () => ({ then: "cut" }),
  "truncated JSON": () => ({ then: { status: 200, body: '{"jsonrpc":"2.0","result":{"con' } }),
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
  then: ({ body }) => answerJsonRpc(body, { sendTransaction: () => "x" }),
};

/** A fault that the run injects for some time. */
interface Scenario {
  readonly name: string;
  /** Injects the fault; returns a function that removes it. */
  readonly start: () => () => void;
  /** The fault lasts for LONG_FAULT_MS. Meanwhile all earlier blockhashes expire. */
  readonly isLong?: boolean | undefined;
  /** The duration of a fault that is not long; SHORT_FAULT_MS by default. */
  readonly ms?: number | undefined;
  /** The endpoints that fail for a moment before the fault. */
  readonly failBefore?: readonly Endpoint[] | undefined;
  /**
   * The endpoints show different clusters. No replica may start meanwhile, because it cannot know
   * which is right.
   */
  readonly isAmbiguous?: boolean | undefined;
}

const stopAll = (stops: (() => void)[]) => () => {
  for (const stop of stops) stop();
};

/** Returns the faults of the chain. At most one endpoint has a bad node at a time. */
function chainScenarios(system: System, problems: Problems): Scenario[] {
  const { endpoints, badNodes, stale, random, activity, feePayer } = system;
  const { chain } = system.sandbox;
  const sometimes = () => random.isChosen(FAULT_RATE);
  const onAll = (fault: Fault, when: (call: { method: string }) => boolean = () => true) =>
    stopAll(endpoints.map(({ faults }) => faults.add({ ...fault, when })));

  function startBadNode(
    endpoint: Endpoint,
    { methods, isStale, isDownFirst }: BadNode,
  ): () => void {
    const stops = [endpoint.become(methods)];
    if (isDownFirst) {
      // The outage begins with each replica's first call: a replica that calls later would not
      // notice it.
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

  /**
   * Returns three scenarios of each item, one per endpoint. Each third of the list takes the
   * endpoints in turn.
   */
  const atEach = <T>(list: readonly T[], toScenario: (one: T, endpoint: 0 | 1 | 2) => Scenario) =>
    ([0, 1, 2] as const).flatMap((offset) =>
      list.map((one, i) => {
        const endpoint = ((i + offset) % 3) as 0 | 1 | 2;
        const scenario = toScenario(one, endpoint);
        return { ...scenario, name: `endpoint ${endpoint + 1}: ${scenario.name}` };
      }),
    );
  const nodesOfOne = atEach(badNodes, (node, endpoint) => ({
    name: node.name,
    start: () => startBadNode(endpoints[endpoint], node),
    isLong: node.isLong,
    isAmbiguous: node.isOfOtherCluster,
    // Reads go to an endpoint only while those before it back off.
    failBefore: endpoints.slice(0, endpoint),
  }));
  const refusal = ["version 1 refused", () => REFUSES_VERSION_1] as const;
  const faultsOfOne = atEach([...Object.entries(FAULTS), refusal], ([name, fault], endpoint) => ({
    name,
    start: () => endpoints[endpoint].faults.add(fault()),
  }));
  const isSend = isMethod("sendTransaction");
  const ofAll: Scenario[] = [
    {
      name: "transactions: executed, but the response is lost",
      start: () => onAll(RESPONSE_LOST, (call) => isSend(call) && sometimes()),
    },
    {
      name: "transactions: dropped until they expire",
      start: () => onAll(TRANSACTION_DROPPED, isSend),
      isLong: true,
    },
    {
      name: "transactions: landed, but their status is unavailable",
      start: () => onAll({ then: "reset" }, isMethod("getSignatureStatuses")),
      isLong: true,
    },
    {
      name: "transactions: accepted, but dropped",
      start: () => onAll(TRANSACTION_DROPPED, (call) => isSend(call) && sometimes()),
    },
    ...Object.entries(FAULTS).map(([name, fault]) => ({
      name: `all endpoints: ${name}`,
      start: () => onAll(fault(), sometimes),
    })),
  ];
  /** Empties the fee payer while a transaction lands. */
  const withoutFeePayer = (healthy: Methods): Methods => ({
    ...healthy,
    sendTransaction(params) {
      const balance = chain.balance(feePayer);
      chain.setBalance(feePayer, 0n);
      try {
        return healthy.sendTransaction!(params);
      } finally {
        chain.setBalance(feePayer, balance);
      }
    },
  });

  /** Stops the slots until the returned function is called. */
  function standStill(): () => void {
    system.isStill = true;
    const goOn = system.standStill();
    return () => {
      goOn();
      system.isStill = false;
      const endedAt = Date.now();
      setTimeout(() => {
        if (activity.lastBalanceAt < endedAt)
          problems.add(
            "no balance was shown after the cluster stood still",
            `within ${SERVED_MS} ms`,
          );
      }, SERVED_MS).unref();
    };
  }
  const ofCluster: Scenario[] = [
    {
      name: "transactions: landed, but the fee payer could not pay",
      start: () => stopAll(endpoints.map((endpoint) => endpoint.become(withoutFeePayer))),
    },
    ...LOWER_RENTS.map((lamportsPerByte) => ({
      name: `rent of ${lamportsPerByte} lamports per byte`,
      start() {
        system.setRent(lamportsPerByte);
        return () => undefined;
      },
    })),
    { name: "the cluster stands still", start: standStill, ms: STILL_MS },
    {
      name: "all endpoints: version 1 refused",
      start: () => stopAll(endpoints.map(({ faults }) => faults.add(REFUSES_VERSION_1))),
    },
  ];
  return takeTurns(nodesOfOne, ofAll, faultsOfOne, ofCluster);
}

/**
 * Returns the first item of each group, then the second of each, and so on. So a short run has
 * items of all groups.
 */
function takeTurns<T>(...groups: (readonly T[])[]): T[] {
  const rounds = Math.max(...groups.map(({ length }) => length));
  return Array.from({ length: rounds }, (_, i) =>
    groups.flatMap((group) => group.slice(i, i + 1)),
  ).flat();
}

async function sleepUnless(isOver: () => boolean, ms: number): Promise<void> {
  const endsAt = performance.now() + ms;
  while (!isOver() && performance.now() < endsAt) await sleep(POLL_MS);
}

/**
 * Injects faults of the chain, the network, Redis and the replicas. Each of the four has a fixed,
 * repeating order.
 */
export function createFaultSchedule(system: System, problems: Problems) {
  const { social, redis, slowRedis, replicas, frozen, skipped, random, alternates, advanceSlots } =
    system;
  const ofChain = chainScenarios(system, problems);
  const ofNetwork = Object.entries(FAULTS).map(([name, fault]): Scenario => ({
    name: `the network: ${name}`,
    start: () => social.faults.add({ ...fault(), when: () => random.isChosen(FAULT_RATE) }),
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
      const { name, start, isLong, failBefore = [], ms = SHORT_FAULT_MS } = scenario;
      while (scenario.isAmbiguous && isStarting) await sleep(POLL_MS);
      isAmbiguous ||= scenario.isAmbiguous ?? false;
      injected.add(name);
      const endOutage = stopAll(failBefore.map(({ faults }) => faults.add({ then: "reset" })));
      if (failBefore.length > 0) await sleep(OUTAGE_MS);
      endOutage();
      problems.faultBegan(name);
      const stop = start();
      if (isLong) {
        await sleep(EXPIRES_AFTER_MS);
        advanceSlots(SLOTS_PAST_BLOCKHASH);
        skipped.push({ from: Date.now(), to: Date.now() + BELIEVED_AFTER_MS });
        await sleep(LONG_FAULT_MS - EXPIRES_AFTER_MS);
      } else await sleep(ms);
      stop();
      problems.faultEnded(name);
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
      problems.faultBegan(FREEZE);
      redis.freeze();
      await sleep(FREEZES_MS[counts.freezes++ % FREEZES_MS.length]);
      redis.thaw();
      problems.faultEnded(FREEZE);
      end(frozen);
    }
  }

  /** Kills only the second replica, so that the memory of the first can be compared. */
  async function killReplica(isOver: () => boolean): Promise<void> {
    for (;;) {
      await sleepUnless(isOver, KILLS_AFTER_MS[counts.kills % KILLS_AFTER_MS.length]!);
      if (isOver()) return;
      counts.kills++;
      problems.faultBegan(KILL);
      await replicas[1].kill();
      await sleep(DOWN_MS);
      while (isAmbiguous) await sleep(POLL_MS);
      isStarting = true;
      await replicas[1].start();
      while (!(await replicas[1].isReady())) await sleep(POLL_MS);
      problems.faultEnded(KILL);
      isStarting = false;
    }
  }

  return {
    /** Injects faults until `isOver`, then removes them all. */
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
