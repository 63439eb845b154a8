import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

const MIN_LAMPORTS = 100_000n;
const BASE_FEE = 5_000n;
/** Above any fee without competition for priority. Compute units vary with the addresses. */
const LOW_FEE = 5_100n;
const callsTo = (name: string) => world.sandbox.rpc.calls.filter(isMethod(name)).length;
const artists = (count: number) =>
  world.sandbox.accounts.filter(({ handle }) => handle.startsWith("artist")).slice(0, count);

/** Puts `lamports` of collectable fees into the vault of each account, and makes its address rent-exempt. */
function refill(accounts: ReturnType<typeof artists>, lamports: bigint): void {
  const { chain } = world.sandbox;
  for (const { address, creatorVault } of accounts) {
    chain.setBalance(address, 10n ** 9n);
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + lamports);
  }
}

/** Every fee charged to the fee payer, also for failed transactions. */
function fees(): bigint[] {
  const feePayer = readConfig(world.sandbox.env).secrets.feePayer.publicKey.toBase58();
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
const codes = (answers: { body: any }[]) => answers.map(({ body }) => body.error as string | undefined);
const repeat = <T>(count: number, value: T) => Array.from({ length: count }, () => value);

/** Makes the next collect of an account fail on chain, as its owner can by withdrawing at the same moment. */
async function collectAndFail({ id, address, creatorVault }: ReturnType<typeof artists>[number]) {
  const { chain, rpc } = world.sandbox;
  // The blockhash is read after the simulation and before signing.
  onNext(rpc, isMethod("getLatestBlockhash"), () => {
    chain.setBalance(address, 0n);
  });
  const { body } = await world.collect(id);
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
    expect([fees(), callsTo("simulateTransaction"), callsTo("sendTransaction")]).toEqual([[], 0, 0]);
  });

  it("costs one fee by collecting one account from many addresses as fast as the rate limit allows", async () => {
    world = await startWorld();
    const { id } = world.account("creator");
    const answers = await Promise.all(
      Array.from({ length: 210 }, (_, i) => world.collect(id, { "x-forwarded-for": `192.0.2.${i % 10}` })),
    );
    const later = await Promise.all(repeat(50, id).map((again) => world.collect(again)));
    // Each address sends 21 requests; one is refused.
    expect(codes(answers).filter((code) => code === "RATE_LIMITED")).toHaveLength(10);
    expect(codes(later)).toEqual(repeat(50, "NOTHING_TO_COLLECT"));
    expectLowFees(1);
  });

  it("costs the budget, one low fee at a time, by refilling vaults with the minimum to collect", async () => {
    world = await startWorld({ FEE_BUDGET_LAMPORTS_PER_HOUR: String(5n * LOW_FEE) });
    const accounts = artists(4);
    const rounds = [];
    for (let round = 0; round < 3; round++) {
      refill(accounts, MIN_LAMPORTS);
      rounds.push(...(await Promise.all(accounts.map(({ id }) => world.collect(id)))));
    }
    expect(codes(rounds).toSorted()).toEqual([...repeat(7, "COLLECT_FAILED"), ...repeat(5, undefined)]);
    expect(rounds.at(-1)!.body.message).toBe(
      "The service has spent its fee budget for this hour. Try again in an hour.",
    );
    expectLowFees(5);
  });

  it("costs the budget, one maximum fee at a time, by raising priority fees", async () => {
    world = await startWorld({ FEE_BUDGET_LAMPORTS_PER_HOUR: "120000" });
    world.sandbox.chain.setPriorityFee(1_000_000_000);
    const answers = await Promise.all(artists(6).map(({ id }) => world.collect(id)));
    expect(codes(answers).toSorted()).toEqual([...repeat(4, "COLLECT_FAILED"), ...repeat(2, undefined)]);
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
    const owner = world.sandbox.env.LAUNCHPAD_PROGRAM_ID;
    chain.setAccount(creatorVault, { lamports, owner, data: new Uint8Array() });
    for (let i = 0; i < 10; i++) {
      const answers = await Promise.all(repeat(5, id).map((again) => world.collect(again)));
      expect(codes(answers)).toEqual(repeat(5, "COLLECT_FAILED"));
    }
    expect(callsTo("simulateTransaction")).toBeGreaterThanOrEqual(10);
    expect([fees(), callsTo("sendTransaction")]).toEqual([[], 0]);
  });

  it("costs one fee per backoff with an account that fails on chain after a successful simulation", async () => {
    world = await startWorld();
    const [failing, other] = artists(2);
    refill([failing!], MIN_LAMPORTS);
    await collectAndFail(failing!);
    for (let i = 0; i < 10; i++) {
      const answers = await Promise.all(repeat(5, failing!.id).map((id) => world.collect(id)));
      expect(codes(answers)).toEqual(repeat(5, "COLLECT_FAILED"));
    }
    expect((await world.collect(other!.id)).status).toBe(200);
    expectLowFees(2);
  });

  it("costs the budget with many accounts that fail on chain: failed transactions count in full", async () => {
    world = await startWorld({ FEE_BUDGET_LAMPORTS_PER_HOUR: String(2n * LOW_FEE) });
    const accounts = artists(4);
    refill(accounts, MIN_LAMPORTS);
    await collectAndFail(accounts[0]!);
    await collectAndFail(accounts[1]!);
    const answers = await Promise.all(accounts.slice(2).map(({ id }) => world.collect(id)));
    expect(codes(answers)).toEqual(repeat(2, "COLLECT_FAILED"));
    expectLowFees(2);
  });

  it("costs no more than SECURITY.md states, at the default settings", async () => {
    world = await startWorld();
    const { collect, rateLimit } = readConfig(world.sandbox.env);
    const { budgetLamportsPerHour: budget, minLamports } = collect;
    const highestFee = BASE_FEE + collect.maxPriorityFee;
    const collectsOfOneAddress = BigInt((3_600 / rateLimit.windowSeconds) * rateLimit.max);
    /** Failures of one account in an hour: the first, and after backoffs of 1, 2, 4, 8 and 16 minutes. */
    const failures = 6n;
    const inAnHour = (fee: bigint, collects = budget / fee) => [fee, collects * fee, collects];
    // The numbers of each row in order: lamports per collect, lamports per hour, then those in its text.
    const expected = [
      [0n, 0n],
      [LOW_FEE, 0n, LOW_FEE],
      [...inAnHour(LOW_FEE, collectsOfOneAddress), BigInt(rateLimit.max), minLamports / 50n],
      [...inAnHour(LOW_FEE), budget / LOW_FEE / collectsOfOneAddress + 1n],
      inAnHour(highestFee),
      [0n, 0n],
      inAnHour(highestFee, failures),
      inAnHour(highestFee),
    ];
    const page = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
    expect(numbersInTable(page, "Attack")).toEqual(expected.map((row) => row.map(format)));
  });
});

/** The numbers in each row of the table whose first column has this heading. */
function numbersInTable(page: string, heading: string): string[][] {
  const [, table = ""] = page.split(`\n| ${heading} |`);
  const [lines] = table.split("\n\n");
  return lines!
    .split("\n")
    .slice(2)
    .map((row) => row.match(/\d+(,\d{3})*/g) ?? []);
}

const format = (lamports: bigint) => lamports.toLocaleString("en-US");
