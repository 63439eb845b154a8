import { setTimeout as sleep } from "node:timers/promises";
import type { LoopbackServer } from "../../src/sandbox/loopback-server.ts";
import type { World } from "../../test/support/world.ts";

type Fault = Parameters<LoopbackServer<unknown>["faults"]["add"]>[0];

/** The fraction of matching calls that most faults affect. */
const FAULT_RATE = 0.7;
/** More than the 150 blocks in which a blockhash is valid and the 32 slots to finality together. */
const SLOTS_PAST_BLOCKHASH = 200;

/** Longer than two seconds, after which the gateway resends a transaction and checks whether it has expired. */
const LONGER_THAN_RESEND_MS = 3_000;

const answerWith = (status: number, headers: Record<string, string> = {}) => ({ status, headers, body: "" });

/** Faults of either upstream. */
const FAULTS: Record<string, () => Fault> = {
  slow: () => ({ delayMs: 300 }),
  reset: () => ({ then: "reset" }),
  "no answer": () => ({ then: "hang" }),
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
  then: { status: 200, body: JSON.stringify({ jsonrpc: "2.0", id: 1, result: "x" }) },
};

/** A fault that the run injects for some time. */
interface Scenario {
  readonly name: string;
  /** Injects the fault; returns a function that removes it. */
  readonly start: () => () => void;
  /** The shortest time in which the fault has an effect. */
  readonly minMs?: number;
}

function scenariosOf({ sandbox, secondRpc }: World): Scenario[] {
  const isGatewayCall = ({ method }: { method: string }) => method !== "sandboxAddCreatorFees";
  const isMethod = (name: string) => (call: { method: string }) => call.method === name;
  const isSend = isMethod("sendTransaction");
  const sometimes = (matches: (call: { method: string }) => boolean) => (call: { method: string }) =>
    matches(call) && Math.random() < FAULT_RATE;
  const endpoints = [sandbox.rpc, secondRpc];
  const stopAll = (stops: (() => void)[]) => () => {
    for (const stop of stops) stop();
  };
  const onBoth = (fault: Fault, matches = isGatewayCall) =>
    stopAll(endpoints.map(({ faults }) => faults.add({ ...fault, when: sometimes(matches) })));

  return [
    ...Object.entries(FAULTS).flatMap(([name, fault]): Scenario[] => [
      {
        name: `the network: ${name}`,
        start: () => sandbox.social.faults.add({ ...fault(), when: () => Math.random() < FAULT_RATE }),
      },
      {
        name: `the first endpoint: ${name}`,
        start: () => sandbox.rpc.faults.add({ ...fault(), when: isGatewayCall }),
      },
      { name: `both endpoints: ${name}`, start: () => onBoth(fault()) },
    ]),
    { name: "transactions: executed, but the response is lost", start: () => onBoth(RESPONSE_LOST, isSend) },
    { name: "transactions: accepted, but dropped", start: () => onBoth(TRANSACTION_DROPPED, isSend) },
    {
      name: "transactions: dropped until they expire",
      start() {
        const stop = stopAll(
          endpoints.map(({ faults }) => faults.add({ ...TRANSACTION_DROPPED, when: isSend })),
        );
        return () => {
          sandbox.chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
          stop();
        };
      },
    },
    {
      name: "transactions: landed, but their status is unavailable",
      start: () =>
        stopAll(
          endpoints.map(({ faults }) =>
            faults.add({ then: "reset", when: isMethod("getSignatureStatuses") }),
          ),
        ),
      minMs: LONGER_THAN_RESEND_MS,
    },
  ];
}

/** Injects one fault at a time, in a fixed order that repeats. */
export function createFaultSchedule(world: World) {
  const scenarios = scenariosOf(world);
  let started = 0;
  return {
    /** Injects each fault for `faultMs`, then none for half as long, until `isOver`. */
    async run(faultMs: number, isOver: () => boolean): Promise<void> {
      while (!isOver()) {
        const { start, minMs = 0 } = scenarios[started++ % scenarios.length]!;
        const stop = start();
        await sleep(Math.max(faultMs, minMs));
        stop();
        await sleep(faultMs / 2);
      }
    },
    count: scenarios.length,
    /** The number of different faults injected so far. */
    injected: () => Math.min(started, scenarios.length),
  };
}
