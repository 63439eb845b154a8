import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { newMint } from "../support/new-mint.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000;
const BASE_FEE = 5_000n;
const EMPTY = {
  lamports: 0,
  owner: "11111111111111111111111111111111",
  data: ["", "base64"],
  executable: false,
  rentEpoch: 0,
  space: 0,
};

let world: World;
let endpoints: LyingEndpoint[];
let paidBefore: bigint;
const payerBalance = () => world.sandbox.chain.balance(world.sandbox.feePayer);
const paid = () => paidBefore - payerBalance();
beforeEach(async () => {
  ({ world, endpoints } = await startWithLyingEndpoints(3));
  paidBefore = payerBalance();
});
afterEach(async () => {
  await world.close();
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
});

const collect = async (handle: string, mints: string[] = []) =>
  (await world.collect(world.account(handle).id, {}, mints)).body;
const add = (account: any, lamports: number) => {
  const { lamports: before, ...rest } = account ?? EMPTY;
  return { ...rest, lamports: Number(before) + lamports };
};

/** Overstates an account in reads of accounts. */
const inReads = (address: string) => ({
  getMultipleAccounts(tellTruth: () => any, [keys]: any[]) {
    const { context, value } = tellTruth();
    const index = keys.indexOf(address);
    const lie = index < 0 ? value : value.with(index, add(value[index], 9 * SOL));
    return { context, value: lie };
  },
});

/** Overstates in simulations what all accounts but the fee payer hold before them. */
const IN_SIMULATIONS = {
  simulateTransaction(tellTruth: () => any) {
    const { context, value } = tellTruth();
    const [payer, ...others] = value.preBalances;
    const preBalances = [payer, ...others.map((lamports: any) => Number(lamports) + 9 * SOL)];
    return { context, value: { ...value, preBalances } };
  },
};

describe.each([0, 1, 2])("vaults that only endpoint %i of three overstates", (index) => {
  it("cost no fee", async () => {
    endpoints[index]!.lie(inReads(world.account("newcomer").creatorVault));
    expect(await collect("newcomer")).toMatchObject({ error: "NOTHING_TO_COLLECT" });
    expect(paid()).toBe(0n);
  });

  it("keep no other account's fees waiting in a shared transaction", async () => {
    endpoints[index]!.lie(inReads(world.account("newcomer").creatorVault));
    const collects = ["newcomer", "creator", "artist001"].map((handle) => ({
      socialId: world.account(handle).id,
    }));
    const { body } = await world.graphql(
      "mutation ($collects: [CollectInput!]!) { collectMany(collects: $collects) { collected } }",
      { collects },
    );
    expect(body.data.collectMany.map((each: any) => each.collected > 0)).toEqual([
      false,
      true,
      true,
    ]);
  });
});

it("vaults that the preferred endpoint overstates beside a coin are not what the coin's collect moves", async () => {
  const mint = newMint();
  const { address, creatorVault } = world.account("newcomer");
  world.sandbox.coins.launch({ mint, creator: address, fees: BigInt(SOL) });
  endpoints[0]!.lie(inReads(creatorVault));
  expect(await collect("newcomer", [mint])).toMatchObject({ success: true, collected: "1.0000" });
});

it("the second of three that overstates vaults in reads and simulations costs no fee", async () => {
  endpoints[1]!.lie({ ...inReads(world.account("newcomer").creatorVault), ...IN_SIMULATIONS });
  expect(await collect("newcomer")).toMatchObject({ error: "NOTHING_TO_COLLECT" });
  expect(paid()).toBe(0n);
});

it.each([1, 2])(
  "the first %i of three that overstate vaults in reads and simulations cost two fees a collect",
  async (count) => {
    for (const endpoint of endpoints.slice(0, count))
      endpoint.lie({ ...inReads(world.account("newcomer").creatorVault), ...IN_SIMULATIONS });
    expect(await collect("newcomer")).toMatchObject({ error: "COLLECT_FAILED" });
    expect(world.sandbox.landedCollects()).toHaveLength(2);
    expect(paid()).toBeLessThan(3n * BASE_FEE);
  },
);
