/**
 * Measures what each operation costs the gateway: lookups of new names, of cached names and of coins, pages of
 * history, collects, and streams. The first two rows use the fake upstreams of bench/edge. The others use a sandbox
 * with slots of 200 ms in this process, which also generates the load. The gateway has core 0, everything else core 1.
 *
 * The CPU time and the calls are the gateway's. The rates are seldom its limit: new names wait up to 150 ms for their
 * batch, collects wait for slots, and this process is the slower part of the other rows on the sandbox. A collect's
 * CPU time includes what the gateway does anyway; the rows of one second show how much. Linux counts CPU time in ticks
 * of 10 ms. Memory includes garbage, so it is only roughly that of the streams.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Keypair } from "@solana/web3.js";
import { request } from "undici";
import { createAddresses } from "../src/chain/addresses.ts";
import { readConfig } from "../src/config.ts";
import { startSandbox } from "../src/sandbox/sandbox.ts";
import { openEventStream, type EventStream } from "../test/support/event-stream.ts";
import {
  cpuMicroseconds,
  folder,
  gatewayEnv,
  moveToLoadCore,
  rssMb,
  start,
  startGateway,
  stopAll,
  type Server,
} from "./edge/servers.ts";

const SECONDS = 4;
const IN_FLIGHT = 50;
const WARM_UP_NAMES = 1_000;
const COIN_ACCOUNTS = 50;
const COINS = 10;
const HISTORY_ACCOUNTS = 150;
const TRANSFERS = 20;
/** A new page reads a list and each transfer, and the gateway lets 1,000 reads wait. */
const HISTORIES_IN_FLIGHT = 25;
const WARM_UP_COLLECTS = 100;
const COLLECTS_ALONE = 30;
const COLLECTS_AT_ONCE = 300;
const STREAMS = [200, 2_000];
/** At first the gateway reads watched wallets more often than its limit per minute allows for long. */
const BURST_MS = 5_000;
const CHANGES = 8;

type Operation = (i: number) => Promise<unknown>;

/** Runs an operation with 0, 1, 2, ... until `seconds` have passed or `count` have started; returns how many. */
async function repeat(
  { inFlight = IN_FLIGHT, seconds = SECONDS, count = Infinity },
  operation: Operation,
): Promise<number> {
  const until = performance.now() + seconds * 1_000;
  let sent = 0;
  async function sendNext(): Promise<void> {
    while (sent < count && performance.now() < until) await operation(sent++);
  }
  await Promise.all(Array.from({ length: inFlight }, sendNext));
  return sent;
}

let callers = 0;
/** Another client address for each request. */
const nextCaller = () => `10.${(callers >> 16) & 255}.${(callers >> 8) & 255}.${callers++ & 255}`;

/** Sends a GET, or a POST of `json`, as a new caller. Throws unless the answer is a success. */
async function send({ url }: Server, path: string, json?: object): Promise<void> {
  const { statusCode, body } = await request(url + path, {
    method: json ? "POST" : "GET",
    headers: { "x-forwarded-for": nextCaller(), "content-type": "application/json" },
    body: json ? JSON.stringify(json) : null,
  });
  const text = await body.text();
  const { errors, success } = JSON.parse(text) as { errors?: unknown; success?: boolean };
  if (statusCode !== 200 || errors || success === false) throw new Error(`${path}: ${statusCode} ${text}`);
}

/**
 * The gateway's own counts so far: calls to the chain and to the social network, and lamports paid. Reading them causes
 * a chain call, for the fee payer's balance, at most every 10 s.
 */
async function countsOf({ url }: Server): Promise<[chain: number, network: number, lamports: number]> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const sum = (start: string) =>
    metrics
      .split("\n")
      .filter((line) => line.startsWith(start))
      .reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  return [
    sum('tributary_upstream_calls_total{upstream="chain"'),
    sum('tributary_upstream_calls_total{upstream="social"'),
    sum("tributary_fees_spent_lamports_total"),
  ];
}

/** Prints a row of the table. `run` returns the number of operations. */
async function row(title: string, gateway: Server, run: () => Promise<number>): Promise<void> {
  const before = await countsOf(gateway);
  const cpu = cpuMicroseconds(gateway.child);
  const startedAt = performance.now();
  const count = await run();
  const perSecond = (count * 1_000) / (performance.now() - startedAt);
  const cpuEach = (cpuMicroseconds(gateway.child) - cpu) / count;
  const after = await countsOf(gateway);
  const [chain, network, lamports] = after.map((value, i) => (value - before[i]!) / count);
  const cells = [
    title,
    perSecond.toFixed(perSecond < 10 ? 1 : 0),
    chain!.toFixed(3),
    network!.toFixed(3),
    cpuEach.toFixed(0),
    lamports!.toFixed(0),
  ];
  console.log(`| ${cells.join(" | ")} |`);
}

/** A row of what the gateway does by itself. */
const idleRow = (title: string, gateway: Server) =>
  row(`one second ${title}`, gateway, () => sleep(SECONDS * 1_000).then(() => SECONDS));

async function measureNames(gateway: Server): Promise<void> {
  const lookUp = (i: number) => send(gateway, `/wallet/lookup?handle=n${i}`);
  await repeat({ count: WARM_UP_NAMES, seconds: Infinity }, lookUp);
  let names = 0;
  await row("lookup, new name", gateway, async () => {
    names = await repeat({}, (i) => lookUp(WARM_UP_NAMES + i));
    return names;
  });
  await row("lookup, the same names again", gateway, () =>
    repeat({}, (i) => lookUp(WARM_UP_NAMES + (i % names))),
  );
}

async function measureCoins(gateway: Server): Promise<void> {
  const withCoins = artists.slice(0, COIN_ACCOUNTS).map(({ handle, address }) => {
    const mints = Array.from({ length: COINS }, () => Keypair.generate().publicKey.toBase58());
    for (const mint of mints) coins.launch({ mint, creator: address, fees: 1_000_000_000n });
    return { handle, mints };
  });
  for (const count of [0, 1, COINS]) {
    const lookUp: Operation = (i) => {
      const { handle, mints } = withCoins[i % COIN_ACCOUNTS]!;
      const named = mints.slice(0, count).map((mint) => `&mint=${mint}`);
      return send(gateway, `/wallet/lookup?handle=${handle}${named.join("")}`);
    };
    await repeat({ seconds: 1 }, lookUp);
    await row(`lookup on the sandbox, coins: ${count}`, gateway, () => repeat({}, lookUp));
  }
}

async function measureHistories(gateway: Server): Promise<void> {
  const readers = artists.slice(0, HISTORY_ACCOUNTS);
  for (const { address } of readers) for (let i = 0; i < TRANSFERS; i++) chain.transfer(address, 1_000_000n);
  chain.advanceSlots(40); // Finalizes them: the gateway caches only finalized transfers.
  for (const { handle } of readers) await send(gateway, `/wallet/lookup?handle=${handle}`);
  const query = `query ($handle: String!) {
    wallet(handle: $handle) { history(first: ${TRANSFERS}) { nodes { kind lamports signature } } }
  }`;
  const read = (i: number) => send(gateway, "/graphql", { query, variables: readers[i % readers.length] });
  const warmUp = { inFlight: HISTORIES_IN_FLIGHT, seconds: Infinity, count: HISTORY_ACCOUNTS / 3 };
  await repeat(warmUp, read);
  const rest = { ...warmUp, count: HISTORY_ACCOUNTS - warmUp.count };
  await row(`history, page of ${TRANSFERS} new transfers`, gateway, () =>
    repeat(rest, (i) => read(warmUp.count + i)),
  );
  await row("history, the same pages again", gateway, () => repeat({}, read));
}

async function measureCollects(gateway: Server): Promise<void> {
  const addressesOf = createAddresses(readConfig(sandbox.env).chain);
  const ids = Array.from(
    { length: WARM_UP_COLLECTS + COLLECTS_ALONE + COLLECTS_AT_ONCE },
    (_, i) => `${10 ** 9 + i}`,
  );
  for (const id of ids) chain.setBalance(addressesOf(id).creatorVault, 2_000_000_000n);
  const collect = (count: number, inFlight: number) =>
    repeat({ count, inFlight, seconds: Infinity }, () => send(gateway, "/collect", { socialId: ids.pop() }));
  await collect(WARM_UP_COLLECTS, WARM_UP_COLLECTS);
  await idleRow("without requests", gateway);
  await row("collect, one at a time", gateway, () => collect(COLLECTS_ALONE, 1));
  await row(`collect, ${COLLECTS_AT_ONCE} at once`, gateway, () =>
    collect(COLLECTS_AT_ONCE, COLLECTS_AT_ONCE),
  );
}

async function measureStreams(gateway: Server): Promise<void> {
  const query =
    "subscription ($handle: String!) { wallet(handle: $handle) { balance { vaultLamports pdaLamports } } }";
  const streams: EventStream[] = [];
  const open: Operation = async (i) => {
    const variables = { handle: artists[i % artists.length]!.handle };
    const stream = await openEventStream(gateway.url, { query, variables }, { address: nextCaller() });
    if (stream.status !== 200) throw new Error(`a stream was refused: ${stream.status}`);
    streams.push(stream);
    while (stream.events().length === 0) await sleep(5);
  };
  const events = () => streams.reduce((sum, stream) => sum + stream.events().length, 0);
  const sizesMb: number[] = [];
  for (const count of STREAMS) {
    await row(`open a stream, up to ${count} on ${artists.length} accounts`, gateway, () =>
      repeat({ count: count - streams.length, seconds: Infinity }, open),
    );
    sizesMb.push(rssMb(gateway.child));
    await sleep(BURST_MS);
    await idleRow(`with ${count} streams and no changes`, gateway);
    await row(`event, ${count} streams, each account changes each second`, gateway, async () => {
      const before = events();
      for (let i = 0; i < CHANGES; i++) {
        for (const { creatorVault } of artists)
          chain.setBalance(creatorVault, chain.balance(creatorVault) + 1_000_000n);
        await sleep(1_000);
      }
      return events() - before;
    });
  }
  console.log(`\nResident memory with ${STREAMS.join(" and ")} streams: ${sizesMb.join(" and ")} MB`);
}

moveToLoadCore();
const sandbox = await startSandbox({ rpcPort: 0, socialPort: 0 });
const { chain, coins } = sandbox;
const artists = sandbox.accounts.filter(({ handle }) => handle.startsWith("artist"));
try {
  const upstreams = await start(1, `${folder}/upstreams.ts`);
  const limits = {
    RATE_LIMIT_MAX: "1000000",
    FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000",
    STREAMS_MAX: "1000000",
  };
  const gateways = {
    onUpstreams: await startGateway({ ...gatewayEnv(upstreams.url), ...limits }),
    onSandbox: await startGateway({ ...gatewayEnv(sandbox.rpc.url), ...sandbox.env, ...limits }),
  };
  console.log(
    "| operation | per second | chain calls per operation | network calls per operation | CPU µs per operation | lamports per operation |\n|---|--:|--:|--:|--:|--:|",
  );
  await measureNames(gateways.onUpstreams);
  await measureCoins(gateways.onSandbox);
  await measureHistories(gateways.onSandbox);
  await measureCollects(gateways.onSandbox);
  await measureStreams(gateways.onSandbox);
} finally {
  stopAll();
}
process.exit(0);
