import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient } from "../support/client.ts";
import { HUNDRED_QUERIES } from "../support/hundred-queries.ts";
import { startProgram } from "../support/program.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROUNDS = 6;
const REQUESTS = 5;
/** The ratio is about 3. If web3.js derives the addresses, it is at least 16. */
const MAX_RATIO = 8;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

it.each(["ids", "mints"] as const)(
  "100 new %s cost little more CPU time than 100 known ones",
  async (name) => {
    const { query, newVariables } = HUNDRED_QUERIES[name];
    const program = startProgram({
      ...sandbox.env,
      ...AMPLE_DEADLINES,
      NODE_ENV: "production",
      PORT: "0",
      RATE_LIMIT_MAX: "1000000",
    });
    const gateway = createClient(await program.address(/"url":"(http[^"]+)"/));

    async function cpuSeconds(): Promise<number> {
      const { body } = await gateway.request("/metrics");
      return Number(/^process_cpu_seconds_total (\S+)$/m.exec(body)![1]);
    }
    async function cpuOf(variables: () => Record<string, unknown>): Promise<number> {
      const before = await cpuSeconds();
      for (let i = 0; i < REQUESTS; i++)
        expect((await gateway.graphql(query, variables())).body.errors).toBeUndefined();
      return (await cpuSeconds()) - before;
    }

    const known = newVariables();
    const ofNew: number[] = [];
    const ofKnown: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      ofNew.push(await cpuOf(newVariables));
      ofKnown.push(await cpuOf(() => known));
    }
    // The least of the rounds: compilation and other processes only add to it.
    expect(Math.min(...ofNew) / Math.min(...ofKnown)).toBeLessThan(MAX_RATIO);
  },
);
