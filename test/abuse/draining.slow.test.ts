import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config.ts";
import { atOnce, from, type Answer } from "../support/client.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

const MIN_LAMPORTS = 100_000n;
/** The amount of which another caller's collect must go through. */
const GUARANTEED_LAMPORTS = 20_000_000n;
const BASE_FEE = 5_000n;
/** Above any fee without competition for priority. Compute units vary with the addresses. */
const LOW_FEE = 5_100n;
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
});
