/**
 * Measures how long honest callers wait for a lookup and a collect while strangers of 1, 4 or 50
 * address blocks send what their limits allow, in a gateway process of its own, with the default
 * plan of calls to the chain. Exits with 1 if an honest caller is not served. The argument: the
 * seconds of each attack (default 15).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, from, type Answer } from "../test/support/client.ts";
import { startTestSandbox } from "../test/support/sandbox.ts";
import { artist, createAttacks } from "./stranger-attacks.ts";
import { startReplica } from "./load/replica.ts";
import { printHead, printRow } from "./measure.ts";

/** Of a block's addresses. Each may send 20 requests a minute. */
const ADDRESSES = 256;
/** Enough for the limits of a block and half; a machine of this kind answers no more. */
const MAX_IN_FLIGHT = 128;
const HONEST_PAUSE_MS = 500;

const seconds = Number(process.argv[2] ?? 15);
const sandbox = await startTestSandbox();
const attacks = createAttacks(sandbox);
/** When the calls to the chain arrived. */
const callsAt: number[] = [];
const record = () => {
  callsAt.push(performance.now());
  return false;
};
sandbox.rpc.faults.add({ when: record, then: "hang" });
let honestCallers = 0;
let unservedCallers = 0;

/** The code of an answer's error, if any. */
function errorOf({ body }: Answer): string | undefined {
  const { error, errors } = body as {
    error?: string;
    errors?: readonly { extensions?: { code?: string } }[];
  };
  return error ?? errors?.[0]?.extensions?.code;
}

async function run(use: string, blocks: number): Promise<void> {
  const env = { ...sandbox.env, TRUST_PROXY: "127.0.0.1", RATE_LIMIT_MAX: "20" };
  const replica = await startReplica(env);
  const client = createClient(replica.url);
  callsAt.length = 0;
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1_000;
  const isOver = () => performance.now() > endsAt;
  let sentRequests = 0;
  let servedRequests = 0;

  /** One of the strangers' connections: they send as many requests as their limits allow. */
  async function attack(): Promise<void> {
    while (!isOver()) {
      const startedAt = performance.now();
      const i = sentRequests++;
      const address = `192.0.${i % blocks}.${Math.floor(i / blocks) % ADDRESSES}`;
      if (errorOf(await attacks[use]!(client, i, from(address))) === undefined) servedRequests++;
      const perSecond = (blocks * ADDRESSES * 20) / 60;
      const pauseMs = (1_000 * MAX_IN_FLIGHT) / perSecond - (performance.now() - startedAt);
      if (pauseMs > 0) await sleep(pauseMs);
    }
  }

  const longestMs = { lookup: 0, collect: 0 };
  async function callHonestly(): Promise<void> {
    while (!isOver()) {
      const { handle, id } = artist(sandbox, 1 + (honestCallers++ % 190));
      const headers = from(`198.${18 + (honestCallers >> 8)}.${honestCallers & 255}.1`);
      for (const [kind, send] of [
        ["lookup", () => client.lookup(handle, headers)],
        ["collect", () => client.collect(id, headers)],
      ] as const) {
        const startedAt = performance.now();
        const error = errorOf(await send());
        longestMs[kind] = Math.max(longestMs[kind], performance.now() - startedAt);
        if (error === undefined || error === "NOTHING_TO_COLLECT") continue;
        unservedCallers++;
        console.error(`${kind} beside ${use} from ${blocks} blocks: ${error}`);
      }
      await sleep(HONEST_PAUSE_MS);
    }
  }

  await Promise.all([...Array.from({ length: MAX_IN_FLIGHT }, attack), callHonestly()]);
  const elapsedSeconds = (performance.now() - startedAt) / 1_000;
  const perSecond = (count: number) => (count / elapsedSeconds).toFixed(1);
  const toSeconds = (ms: number) => (ms / 1_000).toFixed(2);
  printRow(
    ...[use, String(blocks), perSecond(sentRequests)],
    ...[perSecond(servedRequests), perSecond(callsAt.length)],
    ...[toSeconds(longestMs.lookup), toSeconds(longestMs.collect)],
  );
  await replica.stop();
}

printHead(
  ...["strangers'", "blocks", "requests/s", "served/s", "calls/s"],
  ...["longest lookup, s", "longest collect, s"],
);
for (const use of Object.keys(attacks)) for (const blocks of [1, 4, 50]) await run(use, blocks);
await sandbox.close();
process.exit(unservedCallers > 0 ? 1 : 0);
