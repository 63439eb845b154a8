import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient, from, type Answer, type Client } from "../support/client.ts";
import { newMint } from "../support/new-mint.ts";
import { startProgram } from "../support/program.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";

const SOL = 10n ** 9n;
const CALLS_PER_SECOND = 55;
const BLOCKS = 50;
/** The requests of an attack, and how many of them are in flight. */
const REQUESTS = 150;
const IN_FLIGHT = 75;
/** How many honest callers come during an attack, one after the other. */
const HONEST = 10;
/** No transaction can write to it, so no simulation of a distribution to it succeeds. */
const SYSVAR = "SysvarRent111111111111111111111111111111111";
const UNKNOWN_CURSOR = "5".repeat(88);
const BALANCE = `query ($id: String!, $mints: [String!]) {
  walletById(socialId: $id) { balance(mints: $mints) { vault } }
}`;
const HISTORY = `query ($id: String!, $after: String) {
  walletById(socialId: $id) { history(after: $after) { nodes { signature } } }
}`;

let sandbox: TestSandbox;
/** When the calls to the chain arrived. */
const callsAt: number[] = [];
beforeAll(async () => {
  sandbox = await startTestSandbox();
  const record = () => {
    callsAt.push(performance.now());
    return false;
  };
  sandbox.rpc.faults.add({ when: record, then: "hang" });
});
afterAll(() => sandbox.close());

const artist = (i: number) => sandbox.account(`artist${String(i + 1).padStart(3, "0")}`);

/** Coins of an account that no collect can distribute. */
function failingCoins(creator: string): string[] {
  return Array.from({ length: 5 }, () => {
    const mint = newMint();
    const shareholders = [
      { address: creator, bps: 9_999 },
      { address: SYSVAR, bps: 1 },
    ];
    sandbox.coins.launch({ mint, creator, kind: "shared", shareholders, fees: SOL });
    return mint;
  });
}

type Attack = (client: Client, i: number, headers: Record<string, string>) => Promise<Answer>;

const newId = (i: number) => String(10_000_000 + i);
const ATTACKS: Record<string, () => Attack> = {
  lookups: () => (client, i, headers) => client.graphql(BALANCE, { id: newId(i) }, headers),
  coins: () => (client, i, headers) =>
    client.graphql(BALANCE, { id: newId(i), mints: Array.from({ length: 10 }, newMint) }, headers),
  collects() {
    const accounts = Array.from({ length: 10 }, (_, i) => artist(150 + i));
    const mints = accounts.map(({ address }) => failingCoins(address));
    return (client, i, headers) => client.collect(accounts[i % 10]!.id, headers, mints[i % 10]);
  },
  histories: () => (client, i, headers) =>
    client.graphql(HISTORY, { id: newId(i), after: UNKNOWN_CURSOR }, headers),
};

let honest = 0;

// How long they wait depends on the machine: test/abuse/strangers.test.ts measures simulated time.
it.each(Object.entries(ATTACKS))(
  "strangers of 50 blocks on %s leave honest callers their lookups and collects, and the plan its calls",
  async (_name, createAttack) => {
    const program = startProgram({ ...sandbox.env, PORT: "0", TRUST_PROXY: "127.0.0.1" });
    const client = createClient(await program.address(/"url":"(http[^"]+)"/));
    const attack = createAttack();
    let sent = 0;
    let isOver = false;
    /** Until enough requests have been sent and all honest callers have been served. */
    async function send(): Promise<void> {
      while (sent < REQUESTS || !isOver) {
        const i = sent++;
        await attack(client, i, from(`192.0.${i % BLOCKS}.${1 + (i % 200)}`));
      }
    }
    callsAt.length = 0;
    const startedAt = performance.now();
    const attackers = Promise.all(Array.from({ length: IN_FLIGHT }, send));
    for (let i = 0; i < HONEST; i++) {
      const { handle, id } = artist(honest++);
      const headers = from(`198.51.${honest}.1`);
      expect((await client.lookup(handle, headers)).status).toBe(200);
      expect([200, 400]).toContain((await client.collect(id, headers)).status);
    }
    isOver = true;
    await attackers;
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(callsAt.length).toBeLessThan(CALLS_PER_SECOND * (seconds + 1));
  },
);
