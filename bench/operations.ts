/**
 * Measures what each operation costs the gateway: lookups of new names, of cached names and of coins, pages of
 * history, collects, and streams. The first two rows use the fake upstreams of bench/edge; the others a sandbox with
 * slots of 400 ms in this process, which also generates the load. The gateway has core 0, everything else core 1.
 *
 * Under the sandbox the rates of lookups, histories and opened streams are limited by this process, not by the gateway;
 * those of collects mostly by the slots. Its CPU time and its calls hold either way. They include what it does
 * meanwhile: the rows of one second show how much that is. A row of few operations has a coarse CPU time, because
 * Linux counts it in ticks of 10 ms.
 */
import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { Keypair } from "@solana/web3.js";
import { Pool } from "undici";
import { createAddresses } from "../src/chain/addresses.ts";
import { readConfig } from "../src/config.ts";
import { startSandbox, type Sandbox, type SandboxAccount } from "../src/sandbox/sandbox.ts";
import { openEventStream, type EventStream } from "../test/support/event-stream.ts";
import {
  cpuMicroseconds,
  folder,
  gatewayEnv,
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
/** Each new page reads a list and every transfer; 1,000 reads may wait in the gateway. */
const HISTORIES_IN_FLIGHT = 25;
const WARM_UP_COLLECTS = 100;
const COLLECTS_ALONE = 30;
const COLLECTS_AT_ONCE = 300;
const STREAMS = [200, 2_000];
/** Watching may make several calls at once before its limit, and uses them up first. */
const BURST_MS = 5_000;
const CHANGE_MS = 1_000;
const CHANGES = 8;

/** What a run of operations has in common. */
interface Load {
  readonly inFlight: number;
  readonly seconds?: number;
  readonly count?: number;
}

/** A gateway to measure. `paid` is what its fee payer has paid so far, in lamports. */
interface Measured extends Server {
  readonly paid: () => number;
  readonly send: (path: string, body?: object) => Promise<Record<string, unknown>>;
}

let callers = 0;
/** Another client address for each request. */
const nextCaller = () => `10.${(callers >> 16) & 255}.${(callers >> 8) & 255}.${callers++ & 255}`;

function measured(server: Server, paid = () => 0): Measured {
  const pool = new Pool(server.url, { connections: COLLECTS_AT_ONCE });
  return {
    ...server,
    paid,
    /** Sends a GET, or a POST of `body`, as a new caller. Fails unless the answer is a success. */
    async send(path, body) {
      const { statusCode, body: answer } = await pool.request({
        method: body ? "POST" : "GET",
        path,
        headers: { "x-forwarded-for": nextCaller(), "content-type": "application/json" },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      const parsed = JSON.parse(text) as Record<string, unknown>;
      if (statusCode !== 200 || parsed.errors || parsed.success === false)
        throw new Error(`${path}: ${statusCode} ${text}`);
      return parsed;
    },
  };
}

/** Runs `operation` with 0, 1, 2, ... until `seconds` have passed or `count` have started; returns how many. */
async function repeat(
  { inFlight, seconds = Infinity, count = Infinity }: Load,
  operation: (i: number) => Promise<unknown>,
): Promise<number> {
  const until = performance.now() + seconds * 1_000;
  let sent = 0;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (sent < count && performance.now() < until) await operation(sent++);
    }),
  );
  return sent;
}

async function upstreamCalls({ url }: Server): Promise<{ chain: number; social: number }> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const calls = { chain: 0, social: 0 };
  for (const [, labels, value] of metrics.matchAll(/^tributary_upstream_calls_total\{(.*)\} (\d+)$/gm))
    calls[labels!.includes('upstream="chain"') ? "chain" : "social"] += Number(value);
  return calls;
}

/** Prints a row of the table. `run` returns the number of operations. */
async function row(title: string, gateway: Measured, run: () => Promise<number>): Promise<void> {
  const before = { ...(await upstreamCalls(gateway)), paid: gateway.paid() };
  const cpu = cpuMicroseconds(gateway.child);
  const startedAt = performance.now();
  const count = await run();
  const seconds = (performance.now() - startedAt) / 1_000;
  const cpuEach = (cpuMicroseconds(gateway.child) - cpu) / count;
  const after = await upstreamCalls(gateway);
  const cells = [
    title,
    (count / seconds).toFixed(count / seconds < 10 ? 1 : 0),
    ((after.chain - before.chain) / count).toFixed(3),
    ((after.social - before.social) / count).toFixed(3),
    cpuEach.toFixed(0),
    ((gateway.paid() - before.paid) / count).toFixed(0),
  ];
  console.log(`| ${cells.join(" | ")} |`);
}

/** The 200 accounts of the sandbox that only differ in their balances. */
const artists = (accounts: readonly SandboxAccount[]) =>
  accounts.filter(({ handle }) => handle.startsWith("artist"));

async function measureNames(): Promise<void> {
  const upstreams = await start(1, `${folder}/upstreams.ts`);
  const gateway = measured(await startGateway({ ...gatewayEnv(upstreams.url), RATE_LIMIT_MAX: "1000000" }));
  const lookUp = (i: number) => gateway.send(`/wallet/lookup?handle=n${i}`);
  const inFlight = IN_FLIGHT;
  await repeat({ inFlight, count: WARM_UP_NAMES }, lookUp);
  let names = 0;
  await row("lookup, new name", gateway, async () => {
    names = await repeat({ inFlight, seconds: SECONDS }, (i) => lookUp(WARM_UP_NAMES + i));
    return names;
  });
  await row("lookup, the same names again", gateway, () =>
    repeat({ inFlight, seconds: SECONDS }, (i) => lookUp(WARM_UP_NAMES + (i % names))),
  );
  gateway.child.kill("SIGKILL");
}

async function measureCoins(gateway: Measured, { accounts, coins }: Sandbox): Promise<void> {
  const withCoins = artists(accounts)
    .slice(0, COIN_ACCOUNTS)
    .map(({ handle, address }) => {
      const mints = Array.from({ length: COINS }, () => Keypair.generate().publicKey.toBase58());
      for (const mint of mints) coins.launch({ mint, creator: address, fees: 1_000_000_000n });
      return { handle, mints };
    });
  for (const count of [0, 1, COINS]) {
    const lookUp = (i: number) => {
      const { handle, mints } = withCoins[i % COIN_ACCOUNTS]!;
      const query = mints.slice(0, count).map((mint) => `&mint=${mint}`);
      return gateway.send(`/wallet/lookup?handle=${handle}${query.join("")}`);
    };
    await repeat({ inFlight: IN_FLIGHT, seconds: 1 }, lookUp);
    await row(`lookup, cached name, coins named: ${count}`, gateway, () =>
      repeat({ inFlight: IN_FLIGHT, seconds: SECONDS }, lookUp),
    );
  }
}

async function measureHistories(gateway: Measured, { accounts, chain }: Sandbox): Promise<void> {
  const readers = artists(accounts).slice(0, HISTORY_ACCOUNTS);
  for (const { address } of readers) for (let i = 0; i < TRANSFERS; i++) chain.transfer(address, 1_000_000n);
  chain.advanceSlots(40); // Finalizes them: the gateway caches only finalized transfers.
  const query =
    "query ($handle: String!) { wallet(handle: $handle) { history(first: 20) { nodes { kind lamports signature } } } }";
  const read = (i: number) => gateway.send("/graphql", { query, variables: { handle: readers[i]!.handle } });
  const inFlight = HISTORIES_IN_FLIGHT;
  const warmUp = HISTORY_ACCOUNTS / 3;
  // The network's part of a new name is the first row's.
  for (const { handle } of readers) await gateway.send(`/wallet/lookup?handle=${handle}`);
  await repeat({ inFlight, count: warmUp }, read);
  await row(`history, page of ${TRANSFERS} new transfers`, gateway, () =>
    repeat({ inFlight, count: HISTORY_ACCOUNTS - warmUp }, (i) => read(warmUp + i)),
  );
  await row("history, the same pages again", gateway, () =>
    repeat({ inFlight, seconds: SECONDS }, (i) => read(i % HISTORY_ACCOUNTS)),
  );
}

async function measureCollects(gateway: Measured, { chain, env }: Sandbox): Promise<void> {
  const addressesOf = createAddresses(readConfig(env).chain);
  let nextId = 10 ** 9;
  /** Collects `count` new accounts. */
  function collect(count: number, inFlight: number): Promise<number> {
    const ids = Array.from({ length: count }, () => String(nextId++));
    for (const id of ids) chain.setBalance(addressesOf(id).creatorVault, 2_000_000_000n);
    return repeat({ inFlight, count }, (i) => gateway.send("/collect", { socialId: ids[i] }));
  }
  await collect(WARM_UP_COLLECTS, WARM_UP_COLLECTS);
  await row("one second without requests", gateway, () => idle());
  await row("collect, one at a time", gateway, () => collect(COLLECTS_ALONE, 1));
  await row(`collect, ${COLLECTS_AT_ONCE} at once`, gateway, () =>
    collect(COLLECTS_AT_ONCE, COLLECTS_AT_ONCE),
  );
}

async function idle(): Promise<number> {
  await sleep(SECONDS * 1_000);
  return SECONDS;
}

async function measureStreams(gateway: Measured, { accounts, chain }: Sandbox): Promise<void> {
  const watched = artists(accounts);
  const query =
    "subscription ($handle: String!) { wallet(handle: $handle) { balance { vaultLamports pdaLamports } } }";
  const streams: EventStream[] = [];
  async function open(i: number): Promise<void> {
    const { handle } = watched[i % watched.length]!;
    const stream = await openEventStream(
      gateway.url,
      { query, variables: { handle } },
      { address: nextCaller() },
    );
    if (stream.status !== 200) throw new Error(`a stream was refused: ${stream.status}`);
    streams.push(stream);
    while (stream.events().length === 0) await sleep(5);
  }
  const events = () => streams.reduce((sum, stream) => sum + stream.events().length, 0);
  const sizes: { count: number; mb: number }[] = [];
  for (const count of STREAMS) {
    await row(`open a stream, up to ${count} on ${watched.length} accounts`, gateway, () =>
      repeat({ inFlight: IN_FLIGHT, count: count - streams.length }, open),
    );
    sizes.push({ count, mb: rssMb(gateway.child) });
    await sleep(BURST_MS);
    await row(`one second of ${count} streams without changes`, gateway, () => idle());
    await row(`event, ${count} streams while all accounts change every second`, gateway, async () => {
      const before = events();
      for (let i = 0; i < CHANGES; i++) {
        for (const { creatorVault } of watched)
          chain.setBalance(creatorVault, chain.balance(creatorVault) + 1_000_000n);
        await sleep(CHANGE_MS);
      }
      return events() - before;
    });
  }
  for (const { close } of streams) close();
  const [few, many] = [sizes[0]!, sizes.at(-1)!];
  console.log(
    `\nMemory: ${few.mb} MB with ${few.count} streams, ${many.mb} MB with ${many.count}: ${(((many.mb - few.mb) * 1024) / (many.count - few.count)).toFixed(0)} kB each.`,
  );
}

execFileSync("taskset", ["-acp", "1", String(process.pid)]);
try {
  console.log(
    "| operation | per second | chain calls per operation | network calls per operation | CPU µs per operation | lamports per operation |\n|---|--:|--:|--:|--:|--:|",
  );
  await measureNames();

  const sandbox = await startSandbox({ rpcPort: 0, socialPort: 0 });
  const server = await startGateway({
    ...gatewayEnv(sandbox.rpc.url),
    ...sandbox.env,
    RATE_LIMIT_MAX: "1000000",
    FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000",
    STREAMS_MAX: "1000000",
  });
  const payer = readConfig(sandbox.env).secrets.feePayer.publicKey.toBase58();
  const funds = sandbox.chain.balance(payer);
  const gateway = measured(server, () => Number(funds - sandbox.chain.balance(payer)));
  while (!(await fetch(`${server.url}/readyz`)).ok) await sleep(100);

  await measureCoins(gateway, sandbox);
  await measureHistories(gateway, sandbox);
  await measureCollects(gateway, sandbox);
  await measureStreams(gateway, sandbox);
} finally {
  stopAll();
}
process.exit(0);
