import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

const LEAST = 100_000n;
const BASE_FEE = 5_000n;
/** Above all that a collect costs while nobody pays for priority: its units differ with the addresses. */
const QUIET_FEE = 5_100n;
const called = (name: string) => world.sandbox.rpc.calls.filter(isMethod(name)).length;
const artists = (count: number) =>
  world.sandbox.accounts.filter(({ handle }) => handle.startsWith("artist")).slice(0, count);

/** Puts `lamports` to be collected into the vault of each account, and makes sure that the address can take them. */
function refill(accounts: ReturnType<typeof artists>, lamports: bigint): void {
  const { chain } = world.sandbox;
  for (const { address, creatorVault } of accounts) {
    chain.setBalance(address, 10n ** 9n);
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + lamports);
  }
}

/** Every fee that the chain has taken from the fee payer, well spent or not. */
function fees(): bigint[] {
  const feePayer = readConfig(world.sandbox.env).secrets.feePayer.publicKey.toBase58();
  return world.sandbox.chain
    .ledger()
    .filter(({ message }) => message.staticAccounts[0] === feePayer)
    .map(({ feeLamports }) => feeLamports);
}
const expectQuietFees = (count: number) => {
  expect(fees()).toHaveLength(count);
  for (const fee of fees()) expect(fee).toBeLessThan(QUIET_FEE);
};
const sum = (amounts: bigint[]) => amounts.reduce((total, amount) => total + amount, 0n);
const codes = (answers: { body: any }[]) => answers.map(({ body }) => body.error as string | undefined);
const many = <T>(count: number, value: T) => Array.from({ length: count }, () => value);

/** Makes the next collect of an account land and fail, as its owner can by a withdrawal in the same moment. */
async function collectAndFail({ id, address, creatorVault }: ReturnType<typeof artists>[number]) {
  const { chain, rpc } = world.sandbox;
  // Asked for after the simulation, and before anything is signed.
  onNext(rpc, isMethod("getLatestBlockhash"), () => {
    chain.setBalance(address, 0n);
  });
  const { body } = await world.collect(id);
  chain.setBalance(address, 10n ** 9n);
  expect([body.error, chain.balance(creatorVault)]).toEqual([
    "COLLECT_FAILED",
    chain.rentExemptMinimum(0) + LEAST,
  ]);
}

describe("what an attacker can make the service spend", () => {
  it("nothing, by dust in many vaults", async () => {
    world = await startWorld();
    const accounts = artists(50);
    refill(accounts, LEAST - 1n);
    const answers = await Promise.all(accounts.map(({ id }) => world.collect(id)));
    expect(codes(answers)).toEqual(many(50, "NOTHING_TO_COLLECT"));
    expect([fees(), called("simulateTransaction"), called("sendTransaction")]).toEqual([[], 0, 0]);
  });

  it("one fee, by collecting an account as fast as the limit allows from many addresses", async () => {
    world = await startWorld();
    const { id } = world.account("creator");
    const answers = await Promise.all(
      Array.from({ length: 210 }, (_, i) => world.collect(id, { "x-forwarded-for": `192.0.2.${i % 10}` })),
    );
    const later = await Promise.all(many(50, id).map((again) => world.collect(again)));
    // Of 21 that each address sent, one is refused.
    expect(codes(answers).filter((code) => code === "RATE_LIMITED")).toHaveLength(10);
    expect(codes(later)).toEqual(many(50, "NOTHING_TO_COLLECT"));
    expectQuietFees(1);
  });

  it("the budget, a quiet fee at a time, by refilling vaults with the least that is collected", async () => {
    world = await startWorld({ FEE_BUDGET_LAMPORTS_PER_HOUR: String(5n * QUIET_FEE) });
    const accounts = artists(4);
    const rounds = [];
    for (let round = 0; round < 3; round++) {
      refill(accounts, LEAST);
      rounds.push(...(await Promise.all(accounts.map(({ id }) => world.collect(id)))));
    }
    expect(codes(rounds).toSorted()).toEqual([...many(7, "COLLECT_FAILED"), ...many(5, undefined)]);
    expect(rounds.at(-1)!.body.message).toBe(
      "The service has spent its fee budget for this hour. Try again in an hour.",
    );
    expectQuietFees(5);
  });

  it("the budget, the highest fee at a time, by driving the price of priority up", async () => {
    world = await startWorld({ FEE_BUDGET_LAMPORTS_PER_HOUR: "120000" });
    world.sandbox.chain.setPriorityFee(1_000_000_000);
    const answers = await Promise.all(artists(6).map(({ id }) => world.collect(id)));
    expect(codes(answers).toSorted()).toEqual([...many(4, "COLLECT_FAILED"), ...many(2, undefined)]);
    for (const fee of fees()) expect(fee).toBeLessThanOrEqual(BASE_FEE + 50_000n);
    expect(sum(fees())).toBeGreaterThan(109_000n);
    expect(sum(fees())).toBeLessThanOrEqual(120_000n);
  });

  it("nothing, by an account whose collect always fails: the simulation stops it", async () => {
    world = await startWorld();
    const { chain } = world.sandbox;
    const { id, creatorVault } = world.account("creator");
    const lamports = chain.balance(creatorVault);
    // The launch platform refuses a vault of another program's.
    const owner = world.sandbox.env.LAUNCHPAD_PROGRAM_ID;
    chain.setAccount(creatorVault, { lamports, owner, data: new Uint8Array() });
    for (let i = 0; i < 10; i++) {
      const answers = await Promise.all(many(5, id).map((again) => world.collect(again)));
      expect(codes(answers)).toEqual(many(5, "COLLECT_FAILED"));
    }
    expect(called("simulateTransaction")).toBeGreaterThanOrEqual(10);
    expect([fees(), called("sendTransaction")]).toEqual([[], 0]);
  });

  it("one fee per backoff, by an account that fails on chain after a good simulation", async () => {
    world = await startWorld();
    const [failing, other] = artists(2);
    refill([failing!], LEAST);
    await collectAndFail(failing!);
    for (let i = 0; i < 10; i++) {
      const answers = await Promise.all(many(5, failing!.id).map((id) => world.collect(id)));
      expect(codes(answers)).toEqual(many(5, "COLLECT_FAILED"));
    }
    expect((await world.collect(other!.id)).status).toBe(200);
    expectQuietFees(2);
  });

  it("the budget, by many accounts that fail on chain: what fails is counted in full", async () => {
    world = await startWorld({ FEE_BUDGET_LAMPORTS_PER_HOUR: String(2n * QUIET_FEE) });
    const accounts = artists(4);
    refill(accounts, LEAST);
    await collectAndFail(accounts[0]!);
    await collectAndFail(accounts[1]!);
    const answers = await Promise.all(accounts.slice(2).map(({ id }) => world.collect(id)));
    expect(codes(answers)).toEqual(many(2, "COLLECT_FAILED"));
    expectQuietFees(2);
  });

  it("no more than SECURITY.md says, with the default settings", async () => {
    world = await startWorld();
    const { collect, rateLimit } = readConfig(world.sandbox.env);
    const { budgetLamportsPerHour: budget, minLamports } = collect;
    const highestFee = BASE_FEE + collect.maxPriorityFee;
    const collectsOfOneAddress = BigInt((3_600 / rateLimit.windowSeconds) * rateLimit.max);
    /** Of one account: at the start and after backoffs of 1, 2, 4, 8 and 16 minutes. failure-backoff.test.ts checks them. */
    const failures = 6n;
    const inAnHour = (fee: bigint, collects = budget / fee) => [fee, collects * fee, collects];
    // The numbers of each row, in their order: of a collect, of an hour, then those in its words.
    const expected = [
      [0n, 0n],
      [QUIET_FEE, 0n, QUIET_FEE],
      [...inAnHour(QUIET_FEE, collectsOfOneAddress), BigInt(rateLimit.max), minLamports / 50n],
      [...inAnHour(QUIET_FEE), budget / QUIET_FEE / collectsOfOneAddress + 1n],
      inAnHour(highestFee),
      [0n, 0n],
      inAnHour(highestFee, failures),
      inAnHour(highestFee),
    ];
    const page = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
    expect(numbersInTable(page, "Attack")).toEqual(expected.map((row) => row.map(write)));
  });
});

/** The numbers of each row of the page's table whose first column has this heading. */
function numbersInTable(page: string, heading: string): string[][] {
  const [, table = ""] = page.split(`\n| ${heading} |`);
  const [lines] = table.split("\n\n");
  return lines!
    .split("\n")
    .slice(2)
    .map((row) => row.match(/\d+(,\d{3})*/g) ?? []);
}

const write = (lamports: bigint) => lamports.toLocaleString("en-US");
