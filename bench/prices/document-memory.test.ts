import { Agent, request } from "undici";
import { expect, it, onTestFinished } from "vitest";
import { startProduction } from "../../test/support/production.ts";
import { startTestSandbox } from "../../test/support/sandbox.ts";
import { repeat } from "../measure.ts";
import { times } from "./costly-documents.ts";
import { createTarget, warmUp } from "./price-of.ts";

const DOCUMENTS = 300;
const ADDRESSES = 12;
const ROUNDS = 3;
const MAX_MORE_MB = 120;
/** How often the heap is measured. */
const HEAP_ROUNDS = 20;

/** A valid document of about 6,000 tokens and 65,000 characters. */
const textOf = (i: number) =>
  `{ ${times(100, (j) => `w${j}: walletById(socialId: "${j + 1}") { id socialId address derivation { program seeds bump } ${times(10, () => "...{ id }")} }`)} } #${i}`.padEnd(
    65_500,
    "#",
  );

it("documents of the largest size stay within their memory", async () => {
  const sandbox = await startTestSandbox();
  onTestFinished(() => sandbox.close());
  const { client } = await startProduction(sandbox, { RATE_LIMIT_MAX: "1000" });
  const target = createTarget(client.url, sandbox);
  const agent = new Agent({ connections: ADDRESSES });
  onTestFinished(() => Promise.all([target.close(), agent.close()]).then(() => undefined));

  /** The garbage of lookups makes V8 collect: the least heap counts. */
  async function heapMb(): Promise<number> {
    let least = Infinity;
    for (let round = 0; round < HEAP_ROUNDS; round++) {
      await warmUp(target);
      const metrics = String((await client.request("/metrics")).body);
      const bytes = Number(/^nodejs_heap_size_used_bytes (.*)$/m.exec(metrics)![1]);
      least = Math.min(least, bytes / 1e6);
    }
    return least;
  }

  const send = async (i: number) => {
    const { statusCode, body } = await request(`${client.url}/graphql`, {
      dispatcher: agent,
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-forwarded-for": `10.${i % ADDRESSES}.0.1`,
      },
      body: JSON.stringify({ query: textOf(i) }),
    });
    await body.dump();
    expect(statusCode).toBe(200);
  };

  await send(DOCUMENTS);
  const before = await heapMb();
  for (let round = 0; round < ROUNDS; round++)
    await repeat({ count: DOCUMENTS, inFlight: ADDRESSES }, send);
  const more = (await heapMb()) - before;
  process.stdout.write(`documents | the heap grows by ${more.toFixed(0)} MB\n`);
  expect(more).toBeLessThan(MAX_MORE_MB);
});
