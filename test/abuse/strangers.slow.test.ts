import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient, from } from "../support/client.ts";
import { startProgram } from "../support/program.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { artist, createAttacks } from "../support/strangers.ts";

const CALLS_PER_SECOND = 55;
const BLOCKS = 50;
/** The requests of an attack, and how many of them are in flight. */
const REQUESTS = 150;
const IN_FLIGHT = 75;
/** How many honest callers come during an attack, one after the other. */
const HONEST = 10;
/** So that no call fails because the machine is slow. */
const PATIENT = {
  RPC_TIMEOUT_MS: "60000",
  SOCIAL_TIMEOUT_MS: "60000",
  COLLECT_TIMEOUT_MS: "300000",
};

let sandbox: TestSandbox;
let attacks: ReturnType<typeof createAttacks>;
/** When the calls to the chain arrived. */
const callsAt: number[] = [];
beforeAll(async () => {
  sandbox = await startTestSandbox();
  attacks = createAttacks(sandbox);
  const record = () => {
    callsAt.push(performance.now());
    return false;
  };
  sandbox.rpc.faults.add({ when: record, then: "hang" });
});
afterAll(() => sandbox.close());

let honest = 0;

// How long they wait depends on the machine: test/abuse/strangers.test.ts measures simulated time,
// and bench/strangers.ts prints the times of real processes.
it.each(["lookups", "coins", "collects", "histories"])(
  "strangers of 50 blocks on %s leave honest callers their lookups and collects, and the plan its calls",
  async (use) => {
    const program = startProgram({
      ...sandbox.env,
      ...PATIENT,
      PORT: "0",
      TRUST_PROXY: "127.0.0.1",
    });
    const client = createClient(await program.address(/"url":"(http[^"]+)"/));
    let sent = 0;
    let isOver = false;
    /** Until enough requests have been sent and all honest callers have been served. */
    async function send(): Promise<void> {
      while (sent < REQUESTS || !isOver) {
        const i = sent++;
        await attacks[use]!(client, i, from(`192.0.${i % BLOCKS}.${1 + (i % 200)}`));
      }
    }
    callsAt.length = 0;
    const startedAt = performance.now();
    const attackers = Promise.all(Array.from({ length: IN_FLIGHT }, send));
    try {
      for (let i = 0; i < HONEST; i++) {
        const { handle, id } = artist(sandbox, ++honest);
        const headers = from(`198.51.${honest}.1`);
        const lookup = await client.lookup(handle, headers);
        expect(lookup.status, JSON.stringify(lookup.body)).toBe(200);
        expect([200, 400]).toContain((await client.collect(id, headers)).status);
      }
    } finally {
      isOver = true;
      await attackers;
    }
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(callsAt.length).toBeLessThan(CALLS_PER_SECOND * (seconds + 1));
  },
);
