import { beforeEach, describe, expect } from "vitest";
import { coinFees } from "../support/coin-balances.ts";
import { curveOf, poolOf } from "../support/launchpad-instructions.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { withNewWorld, world } from "../support/fixtures.ts";
import { startWorld, type World } from "../support/world.ts";

const SOL = 1_000_000_000n;
const TRANSACTION_FEE = 5_000n;

const it = withNewWorld();
let chain: World["sandbox"]["chain"];
beforeEach(() => {
  ({ chain } = world.sandbox);
});

const mintsOf = (handle: string) => world.account(handle).coins.map(({ mint }) => mint);
const collect = (handle: string, mints: readonly string[]) =>
  world.collect(world.account(handle).id, {}, mints);
const vaultOf = async (handle: string, mints: readonly string[]) => {
  const path = `/wallet/lookup?handle=${handle}${mints.map((mint) => `&mint=${mint}`).join("")}`;
  return (await world.request(path)).body.balance.vault;
};
const feePayer = () => world.sandbox.feePayer;
const landed = (signature: string) => chain.landed(signature)!;
const waitingOn = (mint: string) => coinFees(chain, mint);
/** What the fee payer lost besides fees of transactions. */
const rentPaid = () =>
  10n * SOL -
  chain.balance(feePayer()) -
  world.sandbox.landedCollects().reduce((sum, { feeLamports }) => sum + feeLamports, 0n);

function launch(
  handle: string,
  coin: Partial<Parameters<World["sandbox"]["coins"]["launch"]>[0]> = {},
) {
  const mint = newMint();
  world.sandbox.coins.launch({ mint, creator: world.account(handle).address, ...coin });
  return mint;
}
function launchInPool(handle: string, fees: bigint) {
  const mint = launch(handle);
  world.sandbox.coins.migrate(mint, { fees });
  return mint;
}

describe("a collect that names a coin", () => {
  it("moves the 5 SOL that wait on its curve, and costs the transaction fee and nothing else", async () => {
    const [mint] = mintsOf("launcher");
    const { address, creatorVault } = world.account("launcher");
    expect(await vaultOf("launcher", [mint!])).toBe("6.2500");
    const { status, body } = await collect("launcher", [mint!]);
    expect([status, body]).toEqual([
      200,
      {
        success: true,
        collected: "6.2500",
        newBalance: "7.7500",
        txSignature: expect.any(String),
        remaining: "0.0000",
        left: [],
        lastCollects: [],
      },
    ]);
    expect(waitingOn(mint!)).toEqual({ curve: 0n, pool: 0n });
    expect(chain.balance(creatorVault)).toBe(chain.rentExemptMinimum(0));
    expect(chain.balance(address)).toBe(7_750_000_000n);
    expect(await vaultOf("launcher", [mint!])).toBe("0.0000");
    const fee = 10n * SOL - chain.balance(feePayer());
    expect(fee).toBe(landed(body.txSignature).feeLamports);
    expect(fee).toBeLessThan(TRANSACTION_FEE + 200n);
  });

  it("may name one coin as `mint`, as a lookup does", async () => {
    const [curveCoin, poolCoin] = mintsOf("launcher");
    const socialId = world.account("launcher").id;
    const post = (members: object) =>
      world.request("/collect", { method: "POST", body: JSON.stringify({ socialId, ...members }) });
    for (const mint of ["nonsense", 7, [curveCoin]])
      expect((await post({ mint })).body).toMatchObject({ success: false, error: "INVALID_MINT" });
    const { body } = await post({ mint: curveCoin, mints: [poolCoin] });
    expect(body).toMatchObject({ collected: "8.7500", remaining: "0.0000" });
    const message =
      "The vault is empty, or holds too little to be worth a transaction. Try again after more trading.";
    expect((await post({ mint: curveCoin, mints: null })).body).toMatchObject({
      message,
      remaining: "0.0000",
    });
  });

  it("moves ten coins with fees in two places each in several collects, the largest first, and says what remains", async () => {
    const mints = Array.from({ length: 10 }, (_, i) =>
      launch("prolific", { fees: SOL << BigInt(i) }),
    );
    for (const mint of mints) world.sandbox.coins.migrate(mint, { fees: SOL });
    const before = chain.balance(world.account("prolific").address);
    expect(await vaultOf("prolific", mints)).toBe("1033.0000");
    const collects: { collected: string; remaining: string }[] = [];
    for (let i = 0; i < 3 && collects.at(-1)?.remaining !== "0.0000"; i++) {
      const { status, body } = await collect("prolific", mints);
      expect([status, body.success]).toEqual([200, true]);
      // Another lookup promises what the collect says remains.
      expect(await vaultOf("prolific", mints)).toBe(body.remaining);
      collects.push(body);
    }
    expect(collects.length).toBeGreaterThan(1);
    expect(collects.at(-1)!.remaining).toBe("0.0000");
    for (const mint of mints) expect(waitingOn(mint)).toEqual({ curve: 0n, pool: 0n });
    // The service has paid for both vaults, whose rent stays there.
    expect(rentPaid()).toBe(650_240n + 1_488_440n);
    expect(chain.balance(world.account("prolific").address) - before).toBe(1_033n * SOL);
    expect(Number(collects[0]!.collected)).toBeGreaterThan(1_000);
  });

  it("moves ten coins in one transaction: five on curves, and five with fees in a pool and on their curve", async () => {
    const coins = Array.from({ length: 10 }, () => launch("prolific", { fees: SOL }));
    for (const mint of coins.slice(5)) world.sandbox.coins.migrate(mint, { fees: SOL });
    const { body } = await collect("prolific", coins);
    expect(body).toMatchObject({ success: true, remaining: "0.0000" });
    for (const mint of coins) expect(waitingOn(mint)).toEqual({ curve: 0n, pool: 0n });
    const { message, unitsConsumed } = landed(body.txSignature);
    expect(message.version).toBe(1);
    expect(unitsConsumed).toBeLessThan(700_000);
  });

  it("lands although fees arrive in its pools after its simulation saw them empty", async () => {
    const { rpc } = world.sandbox;
    const mints = Array.from({ length: 4 }, () => launchInPool("launcher", SOL));
    const pools = mints.map((mint) => ({
      pool: poolOf(mint),
      account: chain.account(poolOf(mint))!,
    }));
    onNext(rpc, isMethod("simulateTransaction"), () => {
      for (const { pool, account } of pools) {
        const data = Buffer.from(account.data);
        data.writeBigUInt64LE(0n, 279);
        chain.setAccount(pool, { ...account, data });
      }
    });
    onNext(rpc, isMethod("getLatestBlockhash"), () => {
      for (const { pool, account } of pools) chain.setAccount(pool, account);
    });
    expect((await collect("launcher", mints)).body).toMatchObject({
      success: true,
      remaining: "0.0000",
    });
    for (const mint of mints) expect(waitingOn(mint)).toEqual({ curve: 0n, pool: 0n });
  });

  it("leaves out coins that never pay the address, and moves the rest", async () => {
    const mints = [...mintsOf("variety"), ...mintsOf("launcher").slice(0, 1), newMint()];
    const others = mints.slice(1).map((mint) => [mint, waitingOn(mint)]);
    const { body } = await collect("variety", mints);
    expect(body).toMatchObject({ success: true, collected: "0.8500", remaining: "0.0000" });
    expect(mints.slice(1).map((mint) => [mint, waitingOn(mint)])).toEqual(others);
  });

  it("moves the good coins although another one's sweep fails", async () => {
    const [good, pool] = mintsOf("launcher");
    const broken = [launch("launcher", { fees: 7n * SOL }), launchInPool("launcher", 6n * SOL)];
    // The accounts record fees that they do not hold.
    const curve = chain.account(curveOf(broken[0]!))!;
    chain.setAccount(curveOf(broken[0]!), { ...curve, lamports: 3n * SOL });
    const data = Buffer.from(chain.account(poolOf(broken[1]!))!.data);
    data.writeBigUInt64LE(9n * SOL, 279);
    chain.setAccount(poolOf(broken[1]!), { ...chain.account(poolOf(broken[1]!))!, data });
    const mints = [...broken, good!, pool!];
    // After two failed simulations, a collect moves the vault; the next one leaves out what failed.
    expect((await collect("launcher", mints)).body).toMatchObject({
      ...{ success: true, collected: "1.2500", remaining: "7.5000" },
    });
    expect((await collect("launcher", mints)).body).toMatchObject({
      ...{ success: true, collected: "7.5000", remaining: "0.0000" },
    });
    expect(waitingOn(good!)).toEqual({ curve: 0n, pool: 0n });
    expect(world.logLines.join()).toContain("a collect leaves out coins");
    expect(world.sandbox.landedCollects()).toHaveLength(2);
  });

  it("leaves out a coin whose curve would hold less than its fees, also with the rent from the fee payer", async () => {
    const broken = launch("creator", { fees: SOL });
    const curve = chain.account(curveOf(broken))!;
    const rent = chain.rentExemptMinimum(curve.data.length);
    chain.setAccount(curveOf(broken), { ...curve, lamports: SOL - rent - 1n });
    expect((await collect("creator", [broken])).body).toMatchObject({ collected: "3.1000" });
  });

  it("fails if only a broken coin waits", async () => {
    const broken = launch("newcomer", { fees: SOL });
    chain.setAccount(curveOf(broken), { ...chain.account(curveOf(broken))!, lamports: SOL / 2n });
    const { status, body } = await collect("newcomer", [broken]);
    expect([status, body]).toMatchObject([500, { success: false, error: "COLLECT_FAILED" }]);
  });

  it("succeeds when someone else sweeps the coin a moment earlier", async () => {
    const [mint] = mintsOf("launcher");
    const { creatorVault, address } = world.account("launcher");
    onNext(world.sandbox.rpc, isMethod("sendTransaction"), () => {
      const data = Buffer.from(chain.account(curveOf(mint!))!.data);
      data.writeBigUInt64LE(0n, 125);
      const curve = chain.account(curveOf(mint!))!;
      chain.setAccount(curveOf(mint!), { ...curve, lamports: curve.lamports - 5n * SOL, data });
      chain.setBalance(creatorVault, chain.balance(creatorVault) + 5n * SOL);
    });
    const { body } = await collect("launcher", [mint!]);
    expect(body).toMatchObject({ success: true, collected: "6.2500" });
    expect(chain.balance(address)).toBe(7_750_000_000n);
  });

  it("collects what arrives on the coin while someone else empties the vault", async () => {
    const mint = launch("creator");
    const { creatorVault } = world.account("creator");
    onNext(world.sandbox.rpc, isMethod("simulateTransaction"), () => {
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
      const curve = chain.account(curveOf(mint))!;
      const data = Buffer.from(curve.data);
      data.writeBigUInt64LE(SOL, 125);
      chain.setAccount(curveOf(mint), { ...curve, lamports: curve.lamports + SOL, data });
    });
    expect((await collect("creator", [mint])).body).toMatchObject({
      success: true,
      collected: "1.0000",
    });
  });

  it("has nothing to collect below MIN_COLLECT_LAMPORTS, vault and coins together", async () => {
    const { creatorVault } = world.account("newcomer");
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 40_000n);
    chain.setBalance(world.account("newcomer").address, SOL);
    const mint = launch("newcomer", { fees: 59_999n });
    expect((await collect("newcomer", [mint])).body.error).toBe("NOTHING_TO_COLLECT");
    world.sandbox.coins.addFees(mint, 1n);
    expect((await collect("newcomer", [mint])).body).toMatchObject({
      success: true,
      collected: "0.0001",
    });
  });

  it("without coins moves only the vaults, and shows no `remaining` over REST", async () => {
    const { body } = await world.collect(world.account("launcher").id);
    expect(body).toEqual({
      success: true,
      collected: "1.2500",
      newBalance: "2.7500",
      txSignature: expect.any(String),
      left: [],
      lastCollects: [],
    });
    expect((await collect("launcher", [])).body).not.toHaveProperty("remaining");
  });

  it("over GraphQL returns the wallet with these coins, read after the collect", async () => {
    const mints = mintsOf("launcher");
    const { id } = world.account("launcher");
    const query = `mutation ($mints: [String!]!) { collect(socialId: "${id}", mints: $mints) {
      success collectedLamports remaining remainingLamports wallet { balance(mints: $mints) { vault } coins(mints: $mints) { waiting reason } }
    } }`;
    const { body } = await world.graphql(query, { mints });
    expect(body.data.collect).toMatchObject({
      success: true,
      collectedLamports: "9750000000",
      remaining: "0.0000",
      remainingLamports: "0",
      wallet: { balance: { vault: "0.0000" } },
    });
    for (const coin of body.data.collect.wallet.coins)
      expect(coin).toMatchObject({ waiting: "0.0000", reason: "NOTHING_WAITING" });
  });
});

describe("vaults that are missing", () => {
  it.each([
    ["curve", [40_000_000n], [], 650_240n],
    ["pool", [], [80_000_000n], 1_488_440n],
    ["curve and pool", [40_000_000n], [80_000_000n], 650_240n + 1_488_440n],
  ])("are paid for by the fee payer with fees on a %s", async (_, curves, pools, rent) => {
    const { address, creatorVault } = world.account("newcomer");
    chain.setBalance(address, SOL);
    const mints = [
      ...curves.map((fees) => launch("newcomer", { fees })),
      ...pools.map((fees) => launchInPool("newcomer", fees)),
    ];
    const promised = await vaultOf("newcomer", mints);
    const { body } = await collect("newcomer", mints);
    expect(body).toMatchObject({ success: true, collected: promised, remaining: "0.0000" });
    expect(rentPaid()).toBe(rent);
    expect(chain.balance(creatorVault)).toBe(chain.rentExemptMinimum(0));
  });

  it("are not paid for with more than 2% of the fees", async () => {
    const mints = [
      launch("newcomer", { fees: 30_000_000n }),
      launchInPool("newcomer", 70_000_000n),
    ];
    const { body } = await collect("newcomer", mints);
    expect(body.error).toBe("NOTHING_TO_COLLECT");
    expect(world.sandbox.landedCollects()).toEqual([]);
  });

  it("the first sweep pays for may make smaller ones cheap enough", async () => {
    const mints = [
      launch("newcomer", { fees: 33_000_000n }),
      launch("newcomer", { fees: 20_000n, curveBytes: 166 }),
    ];
    const { body } = await collect("newcomer", mints);
    expect(body).toMatchObject({ success: true, collected: "0.0330" });
    expect(chain.balance(world.account("newcomer").address)).toBe(33_020_000n);
    expect(rentPaid()).toBe(650_240n);
  });
});

it("all rent of a collect is at most MAX_RENT_LAMPORTS, and another collect does the rest", async () => {
  const stingy = await startWorld({ MAX_RENT_LAMPORTS: 100_000n });
  try {
    const { coins, landedCollects, chain } = stingy.sandbox;
    const { id, address } = stingy.account("creator");
    const mints = [newMint(), newMint()];
    for (const mint of mints) coins.launch({ mint, creator: address, fees: SOL, curveBytes: 151 });
    const first = (await stingy.collect(id, {}, mints)).body;
    expect(first).toMatchObject({ collected: "4.1000", remaining: "1.0000" });
    expect((await stingy.collect(id, {}, mints)).body).toMatchObject({
      collected: "1.0000",
      remaining: "0.0000",
    });
    const fees = landedCollects().reduce((sum, { feeLamports }) => sum + feeLamports, 0n);
    expect(10n * SOL - chain.balance(stingy.sandbox.feePayer) - fees).toBe(2n * 76_200n);
  } finally {
    await stingy.close();
  }
});

describe("INVALID_MINT of a collect", () => {
  it.each([
    ["nonsense", ["nonsense"]],
    ["more than ten", Array.from({ length: 11 }, newMint)],
    ["a number", [7]],
    ["null among them", [null]],
    ["an object", {}],
    ["a string", newMint()],
  ])("refuses %s before any read", async (_, mints) => {
    world.forgetCalls();
    const { status, body } = await world.request("/collect", {
      method: "POST",
      body: JSON.stringify({ socialId: world.account("launcher").id, mints }),
    });
    expect([status, body.error]).toEqual([400, "INVALID_MINT"]);
    expect(world.chainCalls()).not.toContain("getMultipleAccounts");
  });
});
