/**
 * Measures what deriving addresses costs: of web3.js and of the gateway, in turns; and of requests that name 100 ids or
 * mints, new ones and the same ones again. The last part uses the fake upstreams of bench/edge; the gateway has core 0.
 */
import { randomBytes } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { deriveAddress, isOnCurve } from "../src/chain/derive-address.ts";
import { HUNDRED_QUERIES } from "../test/support/hundred-queries.ts";
import {
  cpuMicroseconds,
  folder,
  gatewayEnv,
  moveToLoadCore,
  start,
  startGateway,
  stopAll,
} from "./edge/servers.ts";

const ROUNDS = 20;
const CALLS = 500;
const REQUESTS = 100;
const LOOKUPS = 2_000;

type Call = (key: Buffer) => unknown;

const keys = Array.from({ length: CALLS }, () => randomBytes(32));
const program = new PublicKey(randomBytes(32));
const seedsOf = (key: Buffer) => [Buffer.from("creator-vault"), key];

/** The CPU time of a call, in µs. */
function cpuOf(call: Call): number {
  const before = process.cpuUsage();
  for (const key of keys) call(key);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / CALLS;
}

/** Prints the least of the rounds: other processes only add to it. */
function compare(title: string, web3: Call, own: Call): void {
  let [ofWeb3, ofOwn] = [Infinity, Infinity];
  for (let round = 0; round < ROUNDS; round++) {
    ofWeb3 = Math.min(ofWeb3, cpuOf(web3));
    ofOwn = Math.min(ofOwn, cpuOf(own));
  }
  const cells = [ofWeb3, ofOwn, ofWeb3 / ofOwn].map((value) => value.toFixed(1));
  console.log(`| ${title} | ${cells.join(" | ")} |`);
}

console.log("| | web3.js, CPU µs | the gateway, CPU µs | ratio |\n|---|--:|--:|--:|");
compare("check whether a point is on the curve", (key) => PublicKey.isOnCurve(key), isOnCurve);
compare(
  "derive an address",
  (key) => PublicKey.findProgramAddressSync(seedsOf(key), program),
  (key) => deriveAddress(seedsOf(key), program),
);

moveToLoadCore();
try {
  const upstreams = await start(1, `${folder}/upstreams.ts`);
  const gateway = await startGateway({ ...gatewayEnv(upstreams.url), RATE_LIMIT_MAX: "1000000" });

  /** Prints the gateway's CPU time of a request, after as many requests to warm up. */
  async function row(title: string, count: number, send: () => Promise<Response>): Promise<void> {
    let before = 0;
    for (let i = -count; i < count; i++) {
      if (i === 0) before = cpuMicroseconds(gateway.child);
      const answer = await send();
      const text = await answer.text();
      if (!answer.ok || text.includes('"errors"')) throw new Error(`${title}: ${answer.status} ${text}`);
    }
    const cpu = (cpuMicroseconds(gateway.child) - before) / count;
    console.log(`| ${title} | ${(cpu / 1_000).toFixed(1)} |`);
  }
  const headers = { "content-type": "application/json" };
  const post = (body: object) =>
    fetch(`${gateway.url}/graphql`, { method: "POST", headers, body: JSON.stringify(body) });

  console.log("\n| request | CPU ms |\n|---|--:|");
  for (const [name, { query, newVariables }] of Object.entries(HUNDRED_QUERIES)) {
    const known = newVariables();
    await row(`100 new ${name}`, REQUESTS, () => post({ query, variables: newVariables() }));
    await row(`100 known ${name}`, REQUESTS, () => post({ query, variables: known }));
  }
  await row("lookup", LOOKUPS, () => fetch(`${gateway.url}/wallet/lookup?handle=name`));
} finally {
  stopAll();
}
process.exit(0);
