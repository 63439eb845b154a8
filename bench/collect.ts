/**
 * Measures collects on the sandbox's chain, at two endpoints. As on mainnet, slots take 200 ms and
 * blocks are final 150 ms after their slot; calls take 80 ms. Prints how long a collect takes, also
 * compared with the moment at which its transaction is final, its calls, and what it costs; then a
 * transaction's compute units and fee.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { createAddresses } from "../src/chain/launchpad/account-addresses.ts";
import type { SandboxTransaction } from "../src/sandbox/chain/chain.ts";
import type { JsonRpcCall } from "../src/sandbox/rpc/json-rpc.ts";
import { monotonicNow, msBetween, msSince, type MonotonicTime } from "../src/time/monotonic.ts";
import { onLanded } from "../test/support/chain-levers.ts";
import { median, percentile, printHead, printRow, startOnSandbox } from "./measure.ts";

const SLOT_MS = 200;
const FINALITY_MS = 150;
const LATENCY_MS = 80;
const LONE = 40;
/** Longer than anything that the gateway keeps between two collects. */
const APART_MS = 1_100;
const VAULT = 1_000_000_000n;

const { sandbox, endpoints, config, collect, close } = await startOnSandbox(
  { MAX_PRIORITY_FEE_LAMPORTS: "0" },
  { endpoints: 2, slotMs: SLOT_MS, finalityMs: FINALITY_MS },
);
const { chain } = sandbox;
for (const { faults } of endpoints) faults.add({ delayMs: LATENCY_MS });
const payer = config.secrets.feePayerKeypair.publicKey.toBase58();

/** When each transaction was first final, by signature. */
const finalAt = new Map<string, MonotonicTime>();
const open = new Set<SandboxTransaction>();
onLanded(chain, (transaction) => void open.add(transaction));
setInterval(() => {
  for (const transaction of open) {
    if (transaction.slot > chain.slot("finalized")) continue;
    open.delete(transaction);
    finalAt.set(transaction.signature, monotonicNow());
  }
}, 1).unref();

const addressesOf = createAddresses(config);
let lastId = 10 ** 9;
/** Adds fees to the vaults of new accounts. */
function newAccounts(count: number): string[] {
  const ids = Array.from({ length: count }, () => String(++lastId));
  for (const id of ids)
    chain.setBalance(addressesOf(id).creatorVault, chain.rentExemptMinimum(0) + VAULT);
  return ids;
}

interface Collected {
  readonly ms: number;
  /** The time from the request to the moment of finality. */
  readonly finalMs: number;
}

async function measure(socialId: string, caller = 0): Promise<Collected> {
  const askedAt = monotonicNow();
  const signature = await collect({ socialId }, caller);
  const ms = msSince(askedAt);
  return { ms, finalMs: msBetween(askedAt, finalAt.get(signature)!) };
}

function printCollects(
  title: string,
  run: { collected: Collected[]; calls: number; paid: bigint },
) {
  const { collected, calls, paid } = run;
  const count = collected.length;
  const times = collected.map(({ ms }) => ms);
  const ratios = collected.map(({ ms, finalMs }) => ms / finalMs);
  printRow(
    title,
    ...[median(times).toFixed(0), percentile(times, 95).toFixed(0), median(ratios).toFixed(2)],
    ...[(calls / count).toFixed(1), (Number(paid) / count).toFixed(0)],
  );
}

/** Whether a call is the gateway's own, which looks at an endpoint now and then. */
const isCheck = ({ method, params }: JsonRpcCall): boolean =>
  method === "getGenesisHash" ||
  (method === "getMultipleAccounts" && (params[0] as unknown[]).length === 1);

/** Runs collects, and counts their calls and what they cost. */
async function counted(run: () => Promise<Collected[]>) {
  const before = chain.balance(payer);
  for (const { calls } of endpoints) calls.length = 0;
  const collected = await run();
  const methods = endpoints
    .flatMap(({ calls }) => calls)
    .filter((call) => !isCheck(call))
    .map(({ method }) => method);
  return { collected, methods, calls: methods.length, paid: before - chain.balance(payer) };
}

// Until the code is warm.
for (const id of newAccounts(10)) await measure(id);
const ids = newAccounts(LONE);
const lone = await counted(async () => {
  const collected: Collected[] = [];
  for (const [i, id] of ids.entries()) {
    // At another moment of a slot each time.
    await sleep(APART_MS + (i * SLOT_MS) / LONE);
    collected.push(await measure(id));
  }
  return collected;
});
printHead("collects", "median ms", "p95 ms", "times finality", "calls each", "lamports each");
printCollects("alone", lone);
for (const count of [30, 300]) {
  await sleep(APART_MS);
  const many = newAccounts(count);
  printCollects(
    `${count} at once`,
    await counted(() => Promise.all(many.map((id, i) => measure(id, i)))),
  );
}

printHead("method of a collect alone", "calls");
for (const [method, calls] of Map.groupBy(lone.methods, (each) => each))
  printRow(method, (calls.length / LONE).toFixed(2));

const idOf = (handle: string) => sandbox.accounts.find((each) => each.handle === handle)!.id;
printHead("transaction", "compute units", "lamports paid");
for (const [title, socialId] of [
  ["collect", idOf("artist031")],
  ["collect with the AMM's part", idOf("graduate")],
] as const) {
  const { unitsConsumed, feeLamports } = chain.landed(await collect({ socialId }))!;
  printRow(title, unitsConsumed, String(feeLamports));
}
await close();
process.exit(0);
