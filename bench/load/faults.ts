import { setTimeout as sleep } from "node:timers/promises";
import type { LoopbackServer } from "../../src/sandbox/loopback-server.ts";
import type { World } from "../../test/support/world.ts";

type Fault = Parameters<LoopbackServer<unknown>["faults"]["add"]>[0];

/** Of the calls that a fault is for, the part that meets it. */
const PART = 0.7;
/** More than the blocks in which a blockhash is valid, and the slots until all have finalized. */
const SLOTS_PAST_BLOCKHASH = 200;

/** The gateway sends again every two seconds, and asks then whether the transaction is dead. */
const LONGER_THAN_A_SEND_MS = 3_000;

const statuses = (status: number, headers: Record<string, string> = {}) => ({ status, headers, body: "" });

/** Faults of any server. */
const FAULTS: Record<string, () => Fault> = {
  slow: () => ({ delayMs: 300 }),
  reset: () => ({ then: "reset" }),
  "no answer": () => ({ then: "hang" }),
  "cut short": () => ({ then: "cut" }),
  429: () => ({
    then: statuses(429, {
      "x-rate-limit-reset": String(Math.ceil(Date.now() / 1000) + 1),
      "retry-after": "1",
    }),
  }),
  500: () => ({ then: statuses(500) }),
};

/** Faults of a node that is sent transactions: what the gateway and the chain know then differs. */
const LOST: Fault = { then: "reset", after: true };
const DROPPED: Fault = {
  then: { status: 200, body: JSON.stringify({ jsonrpc: "2.0", id: 1, result: "x" }) },
};

/** To be switched on for a while. */
interface Switch {
  readonly name: string;
  /** Returns what switches it off. */
  readonly start: () => () => void;
  /** A shorter time would show nothing. */
  readonly leastMs?: number;
}

function switchesOf({ sandbox, secondRpc }: World): Switch[] {
  const isGateways = ({ method }: { method: string }) => method !== "sandboxAddCreatorFees";
  const isMethod = (name: string) => (call: { method: string }) => call.method === name;
  const isSend = isMethod("sendTransaction");
  const partly = (isMeant: (call: { method: string }) => boolean) => (call: { method: string }) =>
    isMeant(call) && Math.random() < PART;
  const endpoints = [sandbox.rpc, secondRpc];
  const all = (stops: (() => void)[]) => () => {
    for (const stop of stops) stop();
  };
  const onBoth = (fault: Fault, isMeant = isGateways) =>
    all(endpoints.map(({ faults }) => faults.add({ ...fault, when: partly(isMeant) })));

  return [
    ...Object.entries(FAULTS).flatMap(([name, fault]): Switch[] => [
      {
        name: `the network: ${name}`,
        start: () => sandbox.social.faults.add({ ...fault(), when: () => Math.random() < PART }),
      },
      {
        name: `the first endpoint: ${name}`,
        start: () => sandbox.rpc.faults.add({ ...fault(), when: isGateways }),
      },
      { name: `both endpoints: ${name}`, start: () => onBoth(fault()) },
    ]),
    { name: "transactions: sent, and the answer lost", start: () => onBoth(LOST, isSend) },
    { name: "transactions: taken, and dropped", start: () => onBoth(DROPPED, isSend) },
    {
      name: "transactions: dropped until they can no longer land",
      start() {
        const stop = all(endpoints.map(({ faults }) => faults.add({ ...DROPPED, when: isSend })));
        return () => {
          sandbox.chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
          stop();
        };
      },
    },
    {
      name: "transactions: landed, and nobody can say so",
      start: () =>
        all(
          endpoints.map(({ faults }) =>
            faults.add({ then: "reset", when: isMethod("getSignatureStatuses") }),
          ),
        ),
      leastMs: LONGER_THAN_A_SEND_MS,
    },
  ];
}

/** Switches the faults on, one after another and then from the first again. */
export function createFailing(world: World) {
  const faults = switchesOf(world);
  let started = 0;
  return {
    /** Each for `forMs`, then none for half as long, until `isOver`. */
    async keepFailing(forMs: number, isOver: () => boolean): Promise<void> {
      while (!isOver()) {
        const { start, leastMs = 0 } = faults[started++ % faults.length]!;
        const stop = start();
        await sleep(Math.max(forMs, leastMs));
        stop();
        await sleep(forMs / 2);
      }
    },
    count: faults.length,
    /** The names of the faults that have been there. */
    seen: () => faults.slice(0, started).map(({ name }) => name),
  };
}
