import { setTimeout } from "node:timers/promises";
import { Agent, request } from "undici";
import { expect, it, onTestFinished } from "vitest";
import { percentile } from "../measure.ts";
import { times } from "./costly-documents.ts";
import { startProduction } from "../../test/support/production.ts";
import { startTestSandbox } from "../../test/support/sandbox.ts";

/** The attackers' /64s, all of one /56. Each sends its 20 requests a minute. */
const ATTACKERS = 256;
const REQUESTS_PER_SECOND = 85;
const SECONDS = 15;
const HONEST_PER_SECOND = 10;

const list = (count: number, format: (i: number) => string) =>
  `[${Array.from({ length: count }, (_, i) => JSON.stringify(format(i))).join()}]`;

/** Documents that take as much time as the limits allow: by errors, and by merged fields. */
const DEAR = [
  `{ walletsById(socialIds: ${list(100, (i) => `184467440737095500${i % 10}${i}`.slice(0, 19))}) { ${times(22, (i) => `${"e".repeat(100)}${i}: handle`)} } }`,
  `{ ${'w: walletById(socialId: "7") { id } '.repeat(95)} walletById(socialId: "7") { ${"id ".repeat(120)} } }`,
];

it("an honest caller is served beside 256 networks of one owner that send the dearest documents", async () => {
  const sandbox = await startTestSandbox();
  onTestFinished(() => sandbox.close());
  const { client } = await startProduction(sandbox);
  await client.lookup("creator");
  const cpuSeconds = async () => {
    const metrics = String((await client.request("/metrics")).body);
    return Number(/^process_cpu_seconds_total (.*)$/m.exec(metrics)![1]);
  };
  let answered = 0;
  const latencies: number[] = [];
  let sent = 0;
  const attackers = new Agent({ connections: 100, connectTimeout: 60_000 });
  const honest = new Agent({ connections: 10, connectTimeout: 60_000 });

  /** Sends a request; resolves with its status, or 0 if it fails. */
  async function send(dispatcher: Agent, address: string, query: string): Promise<number> {
    try {
      const { statusCode, body } = await request(`${client.url}/graphql`, {
        dispatcher,
        method: "POST",
        headers: { "content-type": "application/json", "x-forwarded-for": address },
        body: JSON.stringify({ query }),
      });
      await body.dump();
      return statusCode;
    } catch {
      return 0;
    }
  }

  async function attack(): Promise<void> {
    const i = sent++;
    const address = `2001:db8:0:${(i % ATTACKERS).toString(16)}::1`;
    const status = await send(attackers, address, `${DEAR[i % DEAR.length]!} #${i}`);
    if (status === 200) answered++;
  }

  async function lookUp(i: number): Promise<void> {
    const startedAt = performance.now();
    const query = '{ wallet(handle: "creator") { address } }';
    expect(await send(honest, `192.0.${i % 100}.1`, query)).toBe(200);
    latencies.push(performance.now() - startedAt);
  }

  // Opens the connections.
  await Promise.all(Array.from({ length: HONEST_PER_SECOND }, (_, i) => lookUp(i)));
  latencies.length = 0;
  const cpuBefore = await cpuSeconds();
  const startedAt = performance.now();
  const endsAt = startedAt + SECONDS * 1_000;
  const every = async (perSecond: number, run: (i: number) => unknown) => {
    for (let i = 0; performance.now() < endsAt; i++) {
      run(i);
      const nextAt = startedAt + ((i + 1) * 1_000) / perSecond;
      await setTimeout(Math.max(0, nextAt - performance.now()));
    }
  };
  const lookups: Promise<void>[] = [];
  await Promise.all([
    every(REQUESTS_PER_SECOND, attack),
    every(HONEST_PER_SECOND, (i) => lookups.push(lookUp(i))),
  ]);
  await Promise.all(lookups);
  const share = ((await cpuSeconds()) - cpuBefore) / ((performance.now() - startedAt) / 1_000);
  await attackers.destroy();
  const [p50, p99] = [50, 99].map((percent) => Math.round(percentile(latencies, percent)));
  process.stdout.write(
    `dear documents | ${answered} answered, the process takes ${Math.round(100 * share)}% of a core; an honest lookup p50 ${p50} ms, p99 ${p99} ms\n`,
  );
  expect(answered).toBeGreaterThan(0);
  // How long callers wait depends on the machine, which other tests share.
  expect(share).toBeLessThan(0.5);
});
