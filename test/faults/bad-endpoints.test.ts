import { createHash } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { expect, it } from "vitest";
import { RENT_SYSVAR } from "../../src/chain/primitives/rent.ts";
import type { LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { isMethod } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";

let world: World;
let first: LyingEndpoint;
async function start(count: 1 | 2, env: Record<string, string> = {}): Promise<void> {
  const started = await startWithLyingEndpoints(count, env);
  world = started.world;
  [first] = started.endpoints;
}
const lookup = async () => (await world.lookup("creator")).body;
const vault = async (): Promise<unknown> => (await lookup()).balance?.vault;
const collect = async () => (await world.collect(world.account("creator").id)).body;

it.each([1, 2] as const)(
  "a balance never goes back behind a collect, with nodes that ignore minContextSlot: %i endpoints",
  async (count) => {
    // Reads fail soon while no endpoint has reached the required slot.
    await start(count, count === 1 ? { RPC_TIMEOUT_MS: "1000" } : {});
    await world.gateway.start();
    const { chain } = world.sandbox;
    const slot = chain.slot("finalized");
    const { creatorVault } = world.account("creator");
    const lamports = Number(chain.balance(creatorVault));
    first.lie({
      getMultipleAccounts(tellTruth, [keys]) {
        const value = tellTruth().value.map((account: any, i: number) =>
          keys[i] === creatorVault ? { ...account, lamports } : account,
        );
        return { context: { slot }, value };
      },
    });
    expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
    expect(await vault()).toBe(count === 1 ? undefined : "0.0000");
    first.stopLying();
    expect(await vault()).toBe("0.0000");
    expect(await collect()).toMatchObject({ error: "NOTHING_TO_COLLECT" });
  },
);

it("a simulation requires the slot of the read that it checks", async () => {
  await start(2);
  let slot: unknown;
  first.lie({
    getMultipleAccounts(tellTruth) {
      const truth = tellTruth();
      ({ slot } = truth.context);
      return truth;
    },
  });
  expect(await collect()).toMatchObject({ success: true });
  const [simulation] = first.calls.filter(isMethod("simulateTransaction"));
  expect(simulation!.params[1]).toMatchObject({ minContextSlot: slot });
});

/** Makes the preferred endpoint report another price of storage, in lamports per byte and year. */
function reportRent(lamportsPerByteYear: bigint, exemptionThreshold = 1): void {
  const data = Buffer.alloc(17);
  data.writeBigUInt64LE(lamportsPerByteYear);
  data.writeDoubleLE(exemptionThreshold, 8);
  first.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      const truth = tellTruth();
      const sysvar = truth.value[keys.indexOf(RENT_SYSVAR)];
      if (sysvar) sysvar.data[0] = data.toString("base64");
      return truth;
    },
  });
}

it("a node that reports a wrong rent is not used while another node answers", async () => {
  await start(2);
  reportRent(7_001n, 2);
  expect(await vault()).toBe("3.1000");
  expect(await collect()).toMatchObject({ success: true, collected: "3.1000" });
});

it("a price of storage that the cluster changes counts from the next lookup on", async () => {
  await start(1);
  const collectable = async () => BigInt((await lookup()).balance.lamports.vault);
  const before = await collectable();
  reportRent(696n);
  expect((await collectable()) - before).toBe(128n * (5_080n - 696n));
  reportRent(3_480n, 2);
  expect(before - (await collectable())).toBe(128n * (6_960n - 5_080n));
});

it("compute units that an endpoint understates fail no transaction with coins, vaults or shared fees", async () => {
  await start(1);
  first.lie({
    simulateTransaction(tellTruth) {
      const { context, value } = tellTruth();
      return { context, value: { ...value, unitsConsumed: 1 } };
    },
  });
  const { chain, coins, landedCollects } = world.sandbox;
  // The least limits hold for the average number of bump seeds: so the addresses are fixed.
  const launch = (handle: string, count: number, inPool: boolean) =>
    Array.from({ length: count }, (_, i) => {
      const hash = createHash("sha256").update(`coin ${i} of ${handle}`).digest();
      const mint = new PublicKey(hash).toBase58();
      const { address: creator } = world.account(handle);
      coins.launch({ mint, creator, fees: inPool ? 0n : 10n ** 9n });
      if (inPool) coins.migrate(mint, 10n ** 9n);
      return mint;
    });
  const mintsOf = (handle: string) => world.account(handle).coins.map(({ mint }) => mint);
  // Both have no vaults.
  chain.setBalance(world.account("artist004").creatorVault, 0n);
  const collects: [string, string[]][] = [
    ["newcomer", launch("newcomer", 5, true)],
    ["artist004", launch("artist004", 10, false)],
    ["artist001", []],
    ["graduate", mintsOf("graduate")],
    ["band", mintsOf("band")],
  ];
  for (const [handle, mints] of collects)
    expect((await world.collect(world.account(handle).id, {}, mints)).body).toMatchObject({
      success: true,
    });
  expect(landedCollects().map(({ err }) => err)).toEqual(collects.map(() => null));
});
