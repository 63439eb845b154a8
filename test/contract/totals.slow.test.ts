/** Callers that know only the documents: README.md, docs/errors.md, docs/clients.md, openapi.json. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { createRandom } from "../support/random.ts";
import { createLedger, type Collected } from "../../examples/ledger.ts";
import { createAddresses } from "../../src/chain/launchpad/account-addresses.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { newMint } from "../support/new-mint.ts";
import { withReplicas, type Replicas } from "../support/replicas.ts";
import { startWorld } from "../support/world.ts";

const SOL = 1_000_000_000n;
const SEED = Number(process.env.TEST_SEED ?? Date.now() % 1_000_000);
const random = createRandom(SEED);

const COLLECT_MANY = `mutation ($collects: [CollectInput!]!) {
  collectMany(collects: $collects) {
    txSignature collectedLamports lastCollects { txSignature collectedLamports }
  }
}`;
type Result = Collected & { readonly lastCollects: readonly Collected[] };

describeWithRedis(`a bot for 250 accounts (seed ${SEED})`, () => {
  let replicas: Replicas;
  withReplicas(
    (started) => {
      replicas = started;
    },
    {
      asProcesses: true,
      env: { RATE_LIMIT_MAX: "1000000", FEE_BUDGET_LAMPORTS_PER_HOUR: String(SOL) },
    },
  );

  it("has the chain's total, although replicas are killed at random", async () => {
    const { chain, env } = replicas.sandbox;
    const addressesOf = createAddresses({
      escrowProgramId: env.ESCROW_PROGRAM_ID,
      escrowSeed: "social",
    });
    const ids = Array.from({ length: 250 }, (_, i) => String(7_000_001 + i));
    const accounts = ids.map(addressesOf);
    for (const { address } of accounts) chain.setBalance(address, SOL);
    const addFees = () => {
      for (const { creatorVault } of accounts) {
        const before = chain.balance(creatorVault) || chain.rentExemptMinimum(0);
        chain.setBalance(creatorVault, before + BigInt(1_000_000 + random.below(Number(SOL))));
      }
    };
    const ledger = createLedger();
    let lost = 0;

    /** Collects each account until an answer says that this is done. */
    async function collectAll(some: readonly string[]): Promise<void> {
      for (let i = random.below(2), open = some; open.length > 0; i++) {
        const collects = open.map((socialId) => ({ socialId }));
        const answer = await replicas
          .at(i)
          .graphql(COLLECT_MANY, { collects })
          .catch(() => undefined);
        if (!answer) {
          lost++;
          await sleep(100);
          continue;
        }
        const { data, errors = [] } = answer.body;
        const results = data.collectMany as (Result | null)[];
        const failed = new Map<number, any>(errors.map((each: any) => [each.path[1], each]));
        open.forEach((socialId, at) => {
          const result = results[at];
          if (result) ledger.record(socialId, result);
          const { lastCollects } = result ?? failed.get(at).extensions;
          for (const each of lastCollects ?? []) ledger.record(socialId, each);
        });
        open = open.filter((_, at) => !results[at]);
        if (open.length > 0) await sleep(500);
      }
    }
    const collectRound = async () => {
      const chunks = Array.from({ length: 10 }, (_, i) => ids.slice(25 * i, 25 * (i + 1)));
      await Promise.all(chunks.map(collectAll));
    };

    for (let i = 0; i < 2; i++) {
      addFees();
      const round = collectRound();
      await sleep(random.below(600));
      replicas.kill(i % 2);
      await replicas.restart(i % 2);
      await round;
    }
    addFees();
    await collectRound();
    // What the last transactions of a killed replica moved.
    await collectRound();

    const moved = accounts.reduce((sum, { address }) => sum + chain.balance(address) - SOL, 0n);
    expect(lost).toBeGreaterThan(0);
    expect(ledger.total()).toBe(moved);
    for (const { creatorVault } of accounts)
      expect(chain.balance(creatorVault)).toBe(chain.rentExemptMinimum(0));
  });
});

it(`a launch site that loses responses has the chain's total (seed ${SEED})`, async () => {
  const world = await startWorld({
    ...{ RATE_LIMIT_MAX: "1000000", FEE_BUDGET_LAMPORTS_PER_HOUR: String(SOL) },
  });
  try {
    const { chain, coins } = world.sandbox;
    const launches = Array.from({ length: 10 }, (_, i) => {
      const account = world.account(`artist0${i + 10}`);
      const mint = newMint();
      coins.launch({ mint, creator: account.address });
      return { ...account, mint, before: chain.balance(account.address) };
    });
    const ledger = createLedger();
    /** REST has SOL with 4 digits after the point. */
    const record = (socialId: string, { txSignature = null, collected = "0.0000" }: any) => {
      ledger.record(socialId, {
        txSignature,
        collectedLamports: `${collected.replace(".", "")}00000`,
      });
    };
    let lost = 0;

    /** Returns undefined for a lost response. */
    async function post(launch: (typeof launches)[number], mayLose: boolean) {
      const isLost = mayLose && random.isChosen(0.5);
      const body = JSON.stringify({ socialId: launch.id, mints: [launch.mint] });
      const signal = AbortSignal.timeout(isLost ? 1 + random.below(400) : 100_000);
      const answer = await world
        .request("/collect", { method: "POST", body, signal })
        .catch(() => undefined);
      if (!isLost && answer) return answer.body;
      lost++;
      return undefined;
    }
    /** Collects until an answer says that nothing more waits. */
    async function collect(launch: (typeof launches)[number], mayLose: boolean): Promise<void> {
      for (;;) {
        const body = await post(launch, mayLose);
        if (!body) return;
        record(launch.id, body);
        for (const each of body.lastCollects ?? []) record(launch.id, each);
        if (body.error === "NOTHING_TO_COLLECT") return;
        if (!body.success) await sleep(100);
      }
    }
    const addFees = ({ mint, creatorVault }: (typeof launches)[number]) => {
      // No amount is cut in SOL with 4 digits.
      const lamports = 100_000n * BigInt(100 + random.below(10_000));
      if (random.isChosen(0.5)) coins.addFees(mint, lamports);
      else {
        const before = chain.balance(creatorVault) || chain.rentExemptMinimum(0);
        chain.setBalance(creatorVault, before + lamports);
      }
    };

    // What the accounts had before has more digits.
    for (const each of launches) chain.setBalance(each.creatorVault, chain.rentExemptMinimum(0));
    for (let round = 0; round < 6; round++) {
      launches.forEach(addFees);
      await Promise.all(launches.map((launch) => collect(launch, true)));
    }
    await Promise.all(launches.map((launch) => collect(launch, false)));

    const moved = launches.reduce(
      (sum, { address, before }) => sum + chain.balance(address) - before,
      0n,
    );
    expect(lost).toBeGreaterThan(0);
    expect(ledger.total()).toBe(moved);
    for (const { creatorVault } of launches)
      expect(chain.balance(creatorVault)).toBe(chain.rentExemptMinimum(0));
  } finally {
    await world.close();
  }
});
