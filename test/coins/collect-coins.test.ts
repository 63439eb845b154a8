import { describe, expect, onTestFinished } from "vitest";
import { shortenCurve } from "../support/chain-levers.ts";
import { coinFees } from "../support/coin-balances.ts";
import { curveOf } from "../support/launchpad-instructions.ts";
import { newMint } from "../support/new-mint.ts";
import { rpcError } from "../support/rpc-answers.ts";
import { hold, isMethod, onNext } from "../support/sandbox.ts";
import { chain, withNewWorld, world } from "../support/fixtures.ts";
import { startWorld, type World } from "../support/world.ts";

const SOL = 1_000_000_000n;
const TRANSACTION_FEE = 5_000n;

const it = withNewWorld();

const mintsOf = (handle: string) => world.account(handle).coins.map(({ mint }) => mint);
const collect = (handle: string, mints: readonly string[]) =>
  world.collect(world.account(handle).id, {}, mints);
const vaultOf = async (handle: string, mints: readonly string[]) => {
  const path = `/wallet/lookup?handle=${handle}${mints.map((mint) => `&mint=${mint}`).join("")}`;
  return (await world.request(path)).body.balance.vault;
};
const waitingOn = (mint: string) => coinFees(chain, mint);
/** What the fee payer lost besides fees of transactions. */
const rentPaid = () =>
  10n * SOL -
  chain.balance(world.sandbox.feePayer) -
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
  world.sandbox.coins.migrate(mint, fees);
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
    const fee = 10n * SOL - chain.balance(world.sandbox.feePayer);
    expect(fee).toBe(chain.landed(body.txSignature)!.feeLamports);
    expect(fee).toBeLessThan(TRANSACTION_FEE + 200n);
  });

  it("may name one coin as `mint`, as a lookup does", async () => {
    const [curveCoin, poolCoin] = mintsOf("launcher");
    const socialId = world.account("launcher").id;
    const post = (members: object) => world.post("/collect", { socialId, ...members });
    const { body } = await post({ mint: curveCoin, mints: [poolCoin] });
    expect(body).toMatchObject({ collected: "8.7500", remaining: "0.0000" });
    const message =
      "The vault is empty, or holds too little to be worth a transaction. Try again after more trading.";
    expect((await post({ mint: curveCoin, mints: null })).body).toMatchObject({ message });
  });

  it("moves ten coins with fees in two places each in several collects, the largest first, and says what remains", async () => {
    const mints = Array.from({ length: 10 }, (_, i) =>
      launch("prolific", { fees: SOL << BigInt(i) }),
    );
    for (const mint of mints) world.sandbox.coins.migrate(mint, SOL);
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

it("a collect that names a coin and joins one without coins is no success with nothing remaining if its own transaction expires", async () => {
  const { rpc } = world.sandbox;
  const { id } = world.account("creator");
  const mint = launch("creator", { fees: SOL });
  const release = hold(rpc, isMethod("simulateTransaction"));
  const stranger = world.collect(id);
  await expect.poll(() => rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
  // Joins before the transaction is signed, so that it would be a success for the owner too.
  const owner = collect("creator", [mint]);
  for (let round = 0; round < 3; round++) await world.request("/livez");
  const isOther = (call: (typeof rpc.calls)[number]) =>
    isMethod("sendTransaction")(call) &&
    call.params[0] !== rpc.calls.find(isMethod("sendTransaction"))!.params[0];
  rpc.faults.add({ when: isOther, then: rpcError({ code: -32005 }) });
  release();
  expect((await stranger).body).toMatchObject({ success: true });
  await expect.poll(() => rpc.calls.some(isOther)).toBe(true);
  // More than the 150 blocks in which a blockhash is valid and the 32 slots to finality together.
  chain.advanceSlots(200);
  const { body } = await owner;
  expect(waitingOn(mint).curve).toBe(SOL);
  expect(body).toMatchObject({ success: false, error: "COLLECT_FAILED" });
  // The coin of a transaction that has expired waits for a minute.
  expect((await collect("creator", [mint])).body).toMatchObject({
    ...{ success: false, moved: "no", left: [{ mint, reason: "BACKING_OFF" }] },
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
      launch("newcomer", { fees: 20_000n }),
    ] as const;
    shortenCurve(chain, mints[1], 166);
    const { body } = await collect("newcomer", mints);
    expect(body).toMatchObject({ success: true, collected: "0.0330" });
    expect(chain.balance(world.account("newcomer").address)).toBe(33_020_000n);
    expect(rentPaid()).toBe(650_240n);
  });
});

it("all rent of a collect is at most MAX_RENT_LAMPORTS, and another collect does the rest", async () => {
  const stingy = await startWorld({ MAX_RENT_LAMPORTS: 100_000n });
  onTestFinished(stingy.close);
  const { coins, landedCollects, chain } = stingy.sandbox;
  const { id, address } = stingy.account("creator");
  const mints = [newMint(), newMint()];
  for (const mint of mints) {
    coins.launch({ mint, creator: address, fees: SOL });
    shortenCurve(chain, mint, 151);
  }
  const collect = async () => (await stingy.collect(id, {}, mints)).body;
  expect(await collect()).toMatchObject({ collected: "4.1000", remaining: "1.0000" });
  expect(await collect()).toMatchObject({ collected: "1.0000", remaining: "0.0000" });
  const fees = landedCollects().reduce((sum, { feeLamports }) => sum + feeLamports, 0n);
  expect(10n * SOL - chain.balance(stingy.sandbox.feePayer) - fees).toBe(2n * 76_200n);
});

it.each([
  ["nonsense", { mints: ["nonsense"] }],
  ["more than ten", { mints: Array.from({ length: 11 }, newMint) }],
  ["null among them", { mints: [null] }],
  ["a string", { mints: newMint() }],
  ["a number as `mint`", { mint: 7 }],
  ["a list as `mint`", { mint: [newMint()] }],
])("INVALID_MINT refuses %s before any read", async (_, members) => {
  world.forgetCalls();
  const socialId = world.account("launcher").id;
  const { status, body } = await world.post("/collect", { socialId, ...members });
  expect([status, body]).toMatchObject([400, { success: false, error: "INVALID_MINT" }]);
  expect(world.chainCalls()).not.toContain("getMultipleAccounts");
});
