import { connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import { Pool } from "undici";
import { openEventStream, type EventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { startProgram } from "../support/program.ts";
import { isMethod, startTestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES, startWorld, type World } from "../support/world.ts";

const WATCH =
  "subscription Watch($id: String!) { walletById(socialId: $id) { id balance { vault } } }";

let world: World | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

async function openStreams(): Promise<number> {
  const { body } = await world!.request("/metrics");
  return Number(/^tributary_streams_open (\d+)$/m.exec(body)![1]);
}
const vaults = ({ events }: EventStream) =>
  events().map(({ data }) => data.walletById.balance.vault as string);

it("1,000 open streams cause no storm of calls when the chain stops, and show the current balance afterwards", async () => {
  world = await startWorld({ RATE_LIMIT_MAX: "1000" });
  const { chain, rpc } = world.sandbox;
  const watched = world.sandbox.accounts
    .filter(({ handle }) => handle.startsWith("artist"))
    .slice(0, 30);
  const streams: EventStream[] = [];
  while (streams.length < 1_000) {
    const batch = Array.from({ length: 50 }, (_, i) => {
      const variables = { id: watched[(streams.length + i) % 30]!.id };
      const address = `10.0.${(streams.length + i) % 100}.1`;
      return openEventStream(world!.url, { query: WATCH, variables }, { address });
    });
    streams.push(...(await Promise.all(batch)));
  }
  await eventually(() => {
    expect(streams.every((stream) => vaults(stream).length === 1)).toBe(true);
  });

  rpc.faults.add({ then: "reset" });
  for (const { creatorVault } of watched)
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 7_000_000_000n);
  rpc.calls.length = 0;
  await eventually(() => {
    expect(rpc.calls.length).toBeGreaterThan(3);
  });
  // Each read is tried twice. Far fewer than streams or wallets, however slow this machine is.
  expect(rpc.calls.length).toBeLessThan(12);
  expect(streams.every((stream) => vaults(stream).length === 1)).toBe(true);

  rpc.faults.clear();
  await eventually(() => {
    expect(new Set(streams.map((stream) => vaults(stream).at(-1)))).toEqual(new Set(["7.0000"]));
  });
  expect(streams.every(({ end }) => end() === undefined)).toBe(true);
  // At SIGTERM all of them end at once, and come back one after the other.
  world.gateway.drain();
  await eventually(() => {
    expect(streams.every(({ end }) => end() === "complete")).toBe(true);
  });
  const counts = new Map<number, number>();
  for (const stream of streams) {
    expect(stream.text()).not.toContain("event: complete");
    expect(vaults(stream).at(-1)).toBe("7.0000");
    const { retryAfterSeconds } = stream.events().at(-1).extensions;
    counts.set(retryAfterSeconds, (counts.get(retryAfterSeconds) ?? 0) + 1);
  }
  expect([...counts.keys()]).toEqual(expect.arrayContaining([2, 3, 4, 5, 6, 7, 8, 9, 10]));
  // On average 111.
  expect(Math.max(...counts.values())).toBeLessThan(200);
  expect(await openStreams()).toBe(0);
});

it("of 10,000 subscriptions attempted from one address, only the allowed ones are open", async () => {
  world = await startWorld({ STREAMS_PER_ADDRESS: 5 });
  const pool = new Pool(world.url, { connections: 50 });
  const headers = {
    accept: "text/event-stream",
    "content-type": "application/json",
    "x-forwarded-for": "192.0.2.1",
  };
  const body = JSON.stringify({ query: WATCH, variables: { id: world.account("creator").id } });
  const statuses: Record<number, number> = {};
  const open: { destroy(): void }[] = [];
  await Promise.all(
    Array.from({ length: 10_000 }, async () => {
      const answer = await pool.request({ path: "/graphql", method: "POST", headers, body });
      statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1;
      if (answer.statusCode === 200) open.push(answer.body.on("error", () => undefined));
      else await answer.body.dump();
    }),
  );
  expect(statuses).toEqual({ 200: 5, 429: 9_995 });
  expect(await openStreams()).toBe(5);
  // Another caller is not affected.
  expect((await world.lookup("creator")).status).toBe(200);
  for (const body of open) body.destroy();
  await pool.destroy();
});

it("a stream whose subscriber has not read ends when its time is up", async () => {
  world = await startWorld({ STREAM_SECONDS: 1 });
  const { port } = new URL(world.url);
  const body = JSON.stringify({ query: WATCH, variables: { id: world.account("creator").id } });
  const socket = connect(Number(port));
  socket.pause();
  socket.write(
    `POST /graphql HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await eventually(async () => {
    expect(await openStreams()).toBe(1);
  });
  await eventually(async () => {
    expect(await openStreams()).toBe(0);
  });
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString())).resume();
  await eventually(() => {
    expect(text).toMatch(/\r\n0\r\n\r\n$/);
  });
  expect(text).toMatch(/^retry: \d+\nevent: next\ndata: .*"retryAfterSeconds":\d+\}\}$/m);
  expect(text).not.toContain("event: complete");
  socket.destroy();
});

it("at SIGTERM the process ends its streams with the time to come back, and exits", async () => {
  const sandbox = await startTestSandbox();
  const program = startProgram({
    ...sandbox.env,
    ...AMPLE_DEADLINES,
    NODE_ENV: "production",
    PORT: "0",
  });
  const url = await program.address(/"url":"(http[^"]+)"/);
  const variables = { id: sandbox.account("creator").id };
  const streams = await Promise.all(
    [1, 2, 3].map(() => openEventStream(url, { query: WATCH, variables })),
  );
  await eventually(() => {
    expect(streams.every(({ events }) => events().length === 1)).toBe(true);
  });
  // From now on the chain answers nothing, so a stream would never end by itself.
  sandbox.rpc.faults.add({ when: isMethod("getMultipleAccounts"), then: "hang" });
  program.child.kill("SIGTERM");
  expect(await program.exitCode()).toBe(0);
  await eventually(() => {
    expect(streams.map(({ end }) => end())).toEqual(["complete", "complete", "complete"]);
  });
  for (const stream of streams)
    expect(stream.events().at(-1)).toEqual({
      ...stream.events()[0],
      extensions: { retryAfterSeconds: expect.any(Number) },
    });
  await sandbox.close();
});
