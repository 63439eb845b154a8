import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { printHead, printRow } from "../../bench/measure.ts";
import { LAUNCHPAD_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import { WINDOW_SECONDS } from "../../src/http/rate-limit/rate-limit.ts";
import { readConfig } from "../../src/config.ts";
import { atOnce, from, type Answer } from "../support/client.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { hold, isMethod, onNext } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

const MIN_LAMPORTS = 100_000n;
/** The amount of which another caller's collect must go through. */
const GUARANTEED_LAMPORTS = 20_000_000n;
const BASE_FEE = 5_000n;
/** Above any fee without competition for priority. Compute units vary with the addresses. */
const LOW_FEE = 5_100n;
/** The same of a distribution with a pool: the units are at least 150,000. */
const SHARED_FEE = 5_150n;
const callsTo = (name: string) => world.sandbox.rpc.calls.filter(isMethod(name)).length;
const artists = (count: number) =>
  world.sandbox.accounts.filter(({ handle }) => handle.startsWith("artist")).slice(0, count);

/**
 * Puts `lamports` of collectable fees into the vault of each account, and makes its address
 * rent-exempt.
 */
function refill(accounts: ReturnType<typeof artists>, lamports: bigint): void {
  const { chain } = world.sandbox;
  for (const { address, creatorVault } of accounts) {
    chain.setBalance(address, 10n ** 9n);
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + lamports);
  }
}

/** Every fee charged to the fee payer, also for failed transactions. */
function fees(): bigint[] {
  const feePayer = readConfig(world.sandbox.env).secrets.feePayerKeypair.publicKey.toBase58();
  return world.sandbox.chain
    .ledger()
    .filter(({ message }) => message.staticAccounts[0] === feePayer)
    .map(({ feeLamports }) => feeLamports);
}
const expectLowFees = (count: number) => {
  expect(fees()).toHaveLength(count);
  for (const fee of fees()) expect(fee).toBeLessThan(LOW_FEE);
};
const sum = (amounts: bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);
const codes = (answers: { body: any }[]) =>
  answers.map(({ body }) => body.error as string | undefined);
/** An address of another block than any other `i`. */
const blockOf = (i: number) => from(`198.${18 + (i >> 8)}.${i & 255}.1`);
const repeat = <T>(count: number, value: T) => Array.from({ length: count }, () => value);

/**
 * Makes the next collect of an account land without effect, as its owner can by withdrawing at the
 * same moment.
 */
async function collectInVain(
  { id, address, creatorVault }: ReturnType<typeof artists>[number],
  caller = blockOf(0),
) {
  const { chain, rpc } = world.sandbox;
  onNext(rpc, isMethod("sendTransaction"), () => {
    chain.setBalance(address, 0n);
  });
  const { body } = await world.collect(id, caller);
  chain.setBalance(address, 10n ** 9n);
  expect([body.error, chain.balance(creatorVault)]).toEqual([
    "COLLECT_FAILED",
    chain.rentExemptMinimum(0) + MIN_LAMPORTS,
  ]);
}

describe("an attacker", () => {
  it("costs the service nothing with dust in many vaults", async () => {
    world = await startWorld();
    const accounts = artists(50);
    refill(accounts, MIN_LAMPORTS - 1n);
    const answers = await Promise.all(accounts.map(({ id }) => world.collect(id)));
    expect(codes(answers)).toEqual(repeat(50, "NOTHING_TO_COLLECT"));
    expect([fees(), callsTo("simulateTransaction"), callsTo("sendTransaction")]).toEqual([
      [],
      0,
      0,
    ]);
  });

  it("costs one fee by collecting one account from many addresses as fast as the rate limit allows", async () => {
    world = await startWorld();
    const { id } = world.account("creator");
    const answers = await Promise.all(
      Array.from({ length: 210 }, (_, i) =>
        world.collect(id, { "x-forwarded-for": `192.0.2.${i % 10}` }),
      ),
    );
    const later = await Promise.all(repeat(50, id).map((again) => world.collect(again)));
    // Each address sends 21 requests; one is refused.
    expect(codes(answers).filter((code) => code === "RATE_LIMITED")).toHaveLength(10);
    expect(codes(later)).toEqual(repeat(50, "NOTHING_TO_COLLECT"));
    expectLowFees(1);
  });

  it("costs the budget, one maximum fee at a time, by raising priority fees", async () => {
    world = await startWorld({ FEE_BUDGET_LAMPORTS_PER_HOUR: "240000" });
    world.sandbox.chain.setPriorityFee(1_000_000_000);
    const answers: Answer[] = [];
    // One after the other, so that none share a transaction.
    for (const [i, { id }] of artists(6).entries())
      answers.push(await world.collect(id, blockOf(i)));
    expect(codes(answers).toSorted()).toEqual([
      ...repeat(4, "COLLECT_FAILED"),
      ...repeat(2, undefined),
    ]);
    for (const fee of fees()) expect(fee).toBeLessThanOrEqual(BASE_FEE + 50_000n);
    expect(sum(fees())).toBeGreaterThan(109_000n);
    expect(sum(fees())).toBeLessThanOrEqual(120_000n);
  });

  it("costs nothing with an account whose collect always fails: the simulation stops it", async () => {
    world = await startWorld();
    const { chain } = world.sandbox;
    const { id, creatorVault } = world.account("creator");
    const lamports = chain.balance(creatorVault);
    // The launch platform refuses a vault that another program owns.
    const owner = LAUNCHPAD_PROGRAM_ID;
    chain.setAccount(creatorVault, { lamports, owner, data: new Uint8Array() });
    for (let i = 0; i < 10; i++) {
      const answers = await Promise.all(repeat(5, id).map((again) => world.collect(again)));
      expect(codes(answers)).toEqual(repeat(5, "COLLECT_FAILED"));
    }
    expect(callsTo("simulateTransaction")).toBeGreaterThanOrEqual(1);
    expect([fees(), callsTo("sendTransaction")]).toEqual([[], 0]);
  });

  it("costs one fee per backoff with an account that is emptied after a successful simulation", async () => {
    world = await startWorld();
    const [failing, other] = artists(2);
    refill([failing!], MIN_LAMPORTS);
    await collectInVain(failing!);
    for (let i = 0; i < 10; i++) {
      const answers = await Promise.all(repeat(5, failing!.id).map((id) => world.collect(id)));
      expect(codes(answers)).toEqual(repeat(5, "COLLECT_FAILED"));
    }
    expect((await world.collect(other!.id)).status).toBe(200);
    expectLowFees(2);
  });

  it("costs the budget with many accounts that are emptied before landing: transactions without effect count in full", async () => {
    // Two fees at once for small collects.
    world = await startWorld({
      FEE_BUDGET_LAMPORTS_PER_HOUR: String(16n * LOW_FEE),
      MAX_PRIORITY_FEE_LAMPORTS: String(LOW_FEE - BASE_FEE),
    });
    const accounts = artists(4);
    refill(accounts, MIN_LAMPORTS);
    await collectInVain(accounts[0]!);
    await collectInVain(accounts[1]!, blockOf(1));
    const answers = await Promise.all(accounts.slice(2).map(({ id }) => world.collect(id)));
    expect(codes(answers)).toEqual(repeat(2, "COLLECT_FAILED"));
    expectLowFees(2);
  });
});

describe("attackers who refill vaults", () => {
  /**
   * At once 300 fees, of which those who have collected leave half, and 75 for each block; of small
   * collects 50, of which those who have collected leave half, and five for each block.
   */
  beforeEach(async () => {
    world = await startWorld({
      FEE_BUDGET_LAMPORTS_PER_HOUR: String(600n * LOW_FEE),
      MAX_PRIORITY_FEE_LAMPORTS: String(LOW_FEE - BASE_FEE),
    });
    failSharedSimulations();
  });
  /**
   * Makes every collect pay a whole fee, which is the most that attackers can cost: accounts share
   * no transaction.
   */
  function failSharedSimulations(): void {
    const { chain, rpc } = world.sandbox;
    const value = { err: "AccountInUse", logs: [] };
    rpc.faults.add({
      when: ({ method, params }) =>
        method === "simulateTransaction" && (params[1] as any).accounts.addresses.length > 2,
      then: (request) => rpcResult({ context: { slot: chain.slot("finalized") }, value })(request),
    });
  }
  const MANY = 160;
  const isCollected = ({ status }: Answer) => status === 200;
  /**
   * What `blocks` addresses of different blocks get, when each collects `collects` accounts at
   * once.
   */
  const attack = (blocks: number, collects: number, first = 0, accounts = artists(MANY)) =>
    atOnce(blocks * collects, (i) =>
      world.collect(accounts[i % accounts.length]!.id, blockOf(first + Math.floor(i / collects))),
    );
  const honest = () => world.collect(world.account("creator").id, from("192.0.2.1"));
  const setHonest = (lamports: bigint) => {
    refill([world.account("creator")], lamports);
  };
  const SHARE_USED =
    /^You have used your share of the service's fee budget for small collects for now\. Try again in (\d+) seconds\.$/;
  function expectRefusal({ status, body, headers }: Answer, message: RegExp): void {
    expect([status, body]).toMatchObject([
      500,
      { success: false, error: "COLLECT_FAILED", message: expect.stringMatching(message) },
    ]);
    expect(body).toMatchObject({ moved: "no", scope: expect.any(String) });
    const [, seconds] = message.exec(body.message)!;
    expect(headers.get("retry-after")).toBe(seconds);
    expect(Number(seconds)).toBeLessThanOrEqual(3_600);
  }

  it("with small sums get a tenth of the small collects' half from one block, and all of it from a thousand; 0.02 SOL still goes through", async () => {
    refill(artists(MANY), MIN_LAMPORTS);
    const ofOne = await attack(1, 20);
    expect(ofOne.filter(isCollected)).toHaveLength(5);
    for (const answer of ofOne.filter((answer) => !isCollected(answer)))
      expectRefusal(answer, SHARE_USED);

    refill(artists(MANY), MIN_LAMPORTS);
    expect((await attack(8, 20, 1)).filter(isCollected).length).toBeLessThanOrEqual(30);
    setHonest(MIN_LAMPORTS);
    expect(await honest()).toMatchObject({ status: 200 });

    // Not all at once, for a slow machine.
    for (let block = 9; block < 309; block += 100) {
      refill(artists(20), MIN_LAMPORTS);
      await attack(100, 1, block, artists(20));
    }
    // A fee flows in every 14 seconds.
    expect(fees().length).toBeGreaterThanOrEqual(50);
    expect(fees().length).toBeLessThanOrEqual(60);
    const statuses = [];
    for (let block = 400; block < 404; block++) {
      setHonest(MIN_LAMPORTS);
      statuses.push((await world.collect(world.account("creator").id, blockOf(block))).status);
    }
    expect(statuses).toContain(500);
    setHonest(GUARANTEED_LAMPORTS);
    expect((await honest()).body).toMatchObject({ success: true, collected: "0.0200" });
  });

  it("so that collects pay for themselves leave half of what the budget holds to others", async () => {
    const pays = 50n * LOW_FEE;
    refill(artists(MANY), pays);
    expect((await attack(1, 20)).filter(isCollected)).toHaveLength(20);
    refill(artists(MANY), pays);
    const ofMany = (await attack(8, 20, 1)).filter(isCollected).length;
    expect(ofMany).toBeGreaterThanOrEqual(130);
    expect(ofMany).toBeLessThanOrEqual(145);
    // The owners pay at withdrawal what the service has paid.
    const withdrawalFees = (BigInt(20 + ofMany) * pays) / 50n;
    expect(withdrawalFees).toBeGreaterThanOrEqual(sum(fees()));
    setHonest(GUARANTEED_LAMPORTS);
    expect((await honest()).body).toMatchObject({ success: true });
  });

  it("cannot make a collect fail for others by starting it when their own share is used", async () => {
    refill(artists(80), GUARANTEED_LAMPORTS);
    const ofBlock = await atOnce(80, (i) =>
      world.collect(artists(80)[i]!.id, from(`198.18.0.${1 + (i % 4)}`)),
    );
    expect(ofBlock.filter(isCollected).length).toBeGreaterThanOrEqual(75);
    expect(ofBlock.filter(isCollected).length).toBeLessThan(80);
    setHonest(GUARANTEED_LAMPORTS);
    const release = hold(world.sandbox.rpc, isMethod("simulateTransaction"));
    const simulations = callsTo("simulateTransaction");
    const started = world.collect(world.account("creator").id, from("198.18.0.5"));
    await expect.poll(() => callsTo("simulateTransaction")).toBe(simulations + 1);
    const joined = honest();
    release();
    expect(await joined).toMatchObject({ status: 200 });
    await started;
  });

  it("are told in GraphQL whose limit is reached, and the metrics count it", async () => {
    refill(artists(6), MIN_LAMPORTS);
    await attack(1, 5);
    const { id } = artists(6)[5]!;
    const { status, body } = await world.graphql(
      "mutation ($id: String!) { collect(socialId: $id) { success } }",
      { id },
      blockOf(0),
    );
    expect([status, body.data, body.errors]).toEqual([
      200,
      { collect: null },
      [
        expect.objectContaining({
          message: expect.stringMatching(SHARE_USED),
          extensions: expect.objectContaining({
            code: "COLLECT_FAILED",
            moved: "no",
            scope: "CALLER",
            retryAfterSeconds: expect.any(Number),
          }),
        }),
      ],
    ]);
    const { body: metrics } = await world.request("/metrics");
    expect(metrics).toMatch(/^tributary_budget_left_ratio\{budget="fees"\} 0\.96/m);
    expect(metrics).toMatch(/^tributary_budget_left_ratio\{budget="small_fees"\} 0\.8/m);
    expect(metrics).toContain('tributary_budget_refusals_total{budget="fees",scope="CALLER"} 1\n');
    expect(metrics).toContain('tributary_collects_total{result="refused"} 1\n');
  });
});

describe("SECURITY.md", () => {
  it("states what attackers can make the service pay in an hour at the default settings", async () => {
    world = await startWorld();
    const config = readConfig(world.sandbox.env);
    const { feeBudgetLamportsPerHour: budget } = config;
    const highestFee = BASE_FEE + config.maxPriorityFeeLamports;
    const perAddress = BigInt((3_600 / WINDOW_SECONDS) * config.rateLimitMax);
    const min = (a: bigint, b: bigint) => (a < b ? a : b);
    /** What addresses in 1, 9 and 1,000 blocks cost, with these limits for a block and for all. */
    const cost = (fee: bigint, share: bigint, limit: bigint) =>
      [1n, 9n, 1_000n].map(
        (blocks) => min(blocks * min(share / fee, perAddress), limit / fee) * fee,
      );
    const small = (fee: bigint) => cost(fee, budget / 20n, budget / 2n);
    const large = (fee: bigint) => cost(fee, budget / 4n, budget);
    /**
     * Failures of one account in an hour: the first, and after backoffs of 1, 2, 4, 8 and 16
     * minutes.
     */
    const failures = 6n;
    const byAttack = {
      "Collect one account repeatedly": repeat(3, LOW_FEE),
      "Refill vaults with MIN_COLLECT_LAMPORTS after each collect": small(LOW_FEE),
      "Refill vaults so that collects pay for themselves": large(LOW_FEE),
      "Distribute others' shared fees in the smallest amounts": small(SHARED_FEE),
      "Small collects, at priority fees driven up to the cap": small(highestFee),
      "An account whose collect fails on the chain": repeat(3, failures * highestFee),
      "Many such accounts": large(highestFee),
      "Coins whose sweeps need rent": [budget / 4n, budget, budget],
    };
    printHead("Attack", "1 block", "9 blocks", "1,000 blocks");
    for (const [attack, lamports] of Object.entries(byAttack))
      printRow(attack, ...lamports.map(format));

    const costs = Object.values(byAttack);
    const most = (values: readonly bigint[]) => values.reduce((a, b) => (a > b ? a : b));
    const ofOneBlock = most(costs.map(([cost]) => cost!));
    const ofSmall = most([LOW_FEE, SHARED_FEE, highestFee].flatMap(small));
    expect(most(costs.flat())).toBeLessThanOrEqual(budget);
    expect(most(costs.map(([, cost]) => cost!))).toBeGreaterThan((99n * budget) / 100n);
    expect(ofSmall).toBeLessThanOrEqual(budget / 2n);
    const page = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
    for (const conclusion of [
      `One block can spend at most ${format(ofOneBlock)} lamports, a quarter of the budget`,
      `Small collects, however many blocks ask, cost at most ${format(budget / 2n)} lamports`,
      `One account whose collect fails on the chain costs at most ${format(failures * highestFee)} lamports`,
    ])
      expect(page).toContain(conclusion);
  });
});

const format = (lamports: bigint) => lamports.toLocaleString("en-US");
