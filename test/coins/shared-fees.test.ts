import { PublicKey } from "@solana/web3.js";
import { beforeEach, describe, expect } from "vitest";
import { PLACES } from "../../src/chain/launchpad/fee-accounts.ts";
import { TOKEN_ACCOUNT_BYTES } from "../../src/chain/launchpad/token-accounts.ts";
import { setWrappedSol } from "../../src/sandbox/chain/accounts.ts";
import { setSharingConfig, STRANGER } from "../../src/sandbox/chain/sharing.ts";
import { setPaused } from "../support/chain-levers.ts";
import { coinFees } from "../support/coin-balances.ts";
import { newMint } from "../support/new-mint.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { hold, isMethod, onNext } from "../support/sandbox.ts";
import { createSkipTime } from "../support/skip-time.ts";
import { chain, withNewWorld, withWorld, world } from "../support/fixtures.ts";

const SOL = 1_000_000_000n;
/** The least lamports of which 60% are worth a collect. */
const ENOUGH = 166_667n;
/** An account that nothing can write to, and that reading does not tell from others. */
const SYSVAR = "SysvarC1ock11111111111111111111111111111111";
/** A program that a distribution does not call. */
const PROGRAM = "EscrowSandbox1111111111111111111111111111111";
const USDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

const ENV = { RATE_LIMIT_MAX: "100000", FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000000" };
const it = withWorld(ENV);
/** For a test that skips time: the clocks then go back. */
const withOwnWorld = withNewWorld(ENV);
/** An account that no other test uses, without fees of its own. */
let handle: string;
let tests = 0;
let collectsBefore: number;
beforeEach(() => {
  handle = `artist${100 + tests++}`;
  const { creatorVault, address } = world.account(handle);
  chain.setBalance(creatorVault, 0n);
  chain.setBalance(address, SOL);
  collectsBefore = world.sandbox.landedCollects().length;
  world.forgetCalls();
});

const addressOf = (name: string) => world.account(name).address;
const bandCoin = () => world.account("band").coins[0]!.mint;
const query = (mints: readonly string[]) => mints.map((mint) => `&mint=${mint}`).join("");
const lookUp = async (name: string, mints: readonly string[]) =>
  (await world.request(`/wallet/lookup?handle=${name}${query(mints)}`)).body;
const coinsOf = async (name: string, mints: readonly string[]): Promise<unknown[]> =>
  (await lookUp(name, mints)).coins.map(({ stage, waiting, shareBps, reason }: any) => [
    stage,
    waiting,
    shareBps,
    reason,
  ]);
const vaultOf = async (name: string, mints: readonly string[]): Promise<string> =>
  (await lookUp(name, mints)).balance.vault;
const collect = async (name: string, mints: readonly string[]) =>
  (await world.collect(world.account(name).id, {}, mints)).body;
const collects = () => world.sandbox.landedCollects().slice(collectsBefore);
const configOf = (mint: string) => world.sandbox.coins.addressesOf(mint).sharingConfig;
const newAddress = () => PublicKey.unique().toBase58();

/** Lets a coin's pool name another creator than its curve does. */
function setPoolCreator(mint: string, creator: string): void {
  const { pool } = world.sandbox.coins.addressesOf(mint);
  const account = chain.account(pool)!;
  const data = Buffer.from(account.data);
  new PublicKey(creator).toBuffer().copy(data, PLACES.POOL.layout.creator);
  chain.setAccount(pool, { ...account, data });
}

interface SharedCoin {
  /** By address or handle, in ten-thousandths. */
  shares?: Record<string, number>;
  onCurve?: bigint;
  /** Undefined if the coin has not migrated. */
  inPool?: bigint;
  inVault?: bigint;
  quoteMint?: string;
}

/** A coin that the account shares with a stranger, who has 1 SOL. */
function launch(coin: SharedCoin = {}): string {
  const {
    shares = { [handle]: 6_000, [STRANGER]: 4_000 },
    onCurve = 0n,
    inPool,
    inVault = 0n,
    quoteMint,
  } = coin;
  const mint = newMint();
  const { coins } = world.sandbox;
  const shareholders = Object.entries(shares).map(([name, bps]) => {
    const known = world.sandbox.accounts.find((account) => account.handle === name);
    return { address: known?.address ?? name, bps };
  });
  coins.launch({ mint, creator: STRANGER, shareholders, fees: onCurve, quoteMint });
  if (inPool !== undefined) coins.migrate(mint, inPool);
  if (inVault > 0n)
    chain.setBalance(configOf(mint).creatorVault, chain.rentExemptMinimum(0) + inVault);
  return mint;
}
describe("a lookup that names a coin whose fees are shared", () => {
  it("shows each shareholder its share, and counts it in the vault", async () => {
    const mint = bandCoin();
    expect(await coinsOf("band", [mint])).toEqual([["CURVE", "0.6000", 5_000, null]]);
    expect(await vaultOf("band", [mint])).toBe("0.8000");
    expect(await coinsOf("graduate", [mint])).toEqual([["CURVE", "0.3600", 3_000, null]]);
    expect(await vaultOf("graduate", [mint])).toBe("1.8600");
  });

  it("shows nobody else's share, and a collect moves none", async () => {
    const mint = launch({ onCurve: SOL });
    expect(await coinsOf("creator", [mint])).toEqual([["CURVE", "1.0000", 0, "SHARED"]]);
    expect(await vaultOf("creator", [mint])).toBe("3.1000");
    expect(JSON.stringify(await lookUp(handle, [mint]))).not.toContain(STRANGER);
    expect(await collect("newcomer", [mint])).toMatchObject({ error: "NOTHING_TO_COLLECT" });
  });

  it("says why a collect moves nothing", async () => {
    const fees = { onCurve: SOL };
    const paused = launch(fees);
    setPaused(world.sandbox.chain, paused, true);
    const cases = {
      PAUSED: [paused],
      BELOW_SHARING_MINIMUM: [
        // The account's part would be too small for a collect.
        launch({ onCurve: ENOUGH - 1n }),
        launch({ shares: { [handle]: 1, [STRANGER]: 9_999 }, onCurve: 999_990_000n }),
      ],
      // The fee payer must not be an account of what it signs.
      SHAREHOLDER_BLOCKED: [
        launch({ shares: { [handle]: 5_000, [world.sandbox.feePayer]: 5_000 }, ...fees }),
      ],
      OTHER_CURRENCY: [launch({ quoteMint: USDC, onCurve: 1_000_000n })],
      NOTHING_WAITING: [launch()],
    };
    for (const [reason, mints] of Object.entries(cases))
      for (const mint of mints) {
        const [coin] = (await lookUp(handle, [mint])).coins;
        expect([coin.collectable, coin.reason]).toEqual([false, reason]);
        expect(await vaultOf(handle, [mint])).toBe("0.0000");
      }
    expect(await collect(handle, Object.values(cases).flat())).toMatchObject({
      error: "NOTHING_TO_COLLECT",
    });
    expect(world.chainCalls()).not.toContain("simulateTransaction");
    const enough = launch({ inVault: ENOUGH });
    // Only a simulation tells whether another shareholder can be paid.
    const unknown = launch({ shares: { [handle]: 9_999, [newAddress()]: 1 }, ...fees });
    expect(await coinsOf(handle, [enough, unknown])).toEqual([
      ["CURVE", "0.0000", 6_000, "NOTHING_WAITING"],
      ["SHARED", "0.0001", 6_000, null],
      ["CURVE", "0.9999", 9_999, null],
    ]);
  });
});

describe("a collect that names a coin whose fees are shared", () => {
  it("moves the vault first, then the account's share, and pays the others", async () => {
    const mint = bandCoin();
    const before = [chain.balance(addressOf("graduate")), chain.balance(STRANGER)];
    expect(await collect("band", [mint])).toMatchObject({
      ...{ success: true, collected: "0.2000", newBalance: "0.5000", remaining: "0.6000" },
    });
    const body = await collect("band", [mint]);
    expect(body).toMatchObject({
      success: true,
      collected: "0.6000",
      newBalance: "1.1000",
      remaining: "0.0000",
    });
    expect(JSON.stringify(body)).not.toContain(STRANGER);
    const after = [chain.balance(addressOf("graduate")), chain.balance(STRANGER)];
    expect(after.map((balance, i) => balance - before[i]!)).toEqual([360_000_000n, 240_000_000n]);
    expect(coinFees(chain, mint).curve).toBe(0n);
    expect(await coinsOf("band", [mint])).toEqual([["CURVE", "0.0000", 5_000, "NOTHING_WAITING"]]);
  });

  it("moves what waits in all places, to the lamport as the balance said", async () => {
    const mint = launch({ onCurve: SOL + 1n, inPool: 2n * SOL + 3n, inVault: 3n * SOL + 5n });
    expect(await coinsOf(handle, [mint])).toEqual([
      ["CURVE", "0.6000", 6_000, null],
      ["POOL", "1.2000", 6_000, null],
      ["SHARED", "1.8000", 6_000, null],
    ]);
    expect(await vaultOf(handle, [mint])).toBe("3.6000");
    expect(await collect(handle, [mint])).toMatchObject({
      collected: "3.6000",
      newBalance: "4.6000",
    });
    expect(chain.balance(addressOf(handle))).toBe(SOL + ((6n * SOL + 9n) * 6n) / 10n);
    expect(collects()).toHaveLength(1);
  });

  it("leaves out coins whose distribution pays nothing or fails in the simulation, and collects the rest", async () => {
    // The part of an address that does not exist is less than its rent.
    const below = Array.from({ length: 2 }, () =>
      launch({ shares: { [handle]: 9_999, [newAddress()]: 1 }, onCurve: SOL }),
    );
    const blocked = launch({ shares: { [handle]: 9_999, [PROGRAM]: 1 }, onCurve: SOL });
    const good = launch({ onCurve: SOL });
    expect(await collect(handle, [...below, blocked, good])).toMatchObject({
      collected: "0.6000",
    });
    for (const mint of [...below, blocked]) expect(coinFees(chain, mint).curve).toBe(SOL);
    expect(collects()).toHaveLength(1);
  });

  it("is collected although a stranger has sent lamports to where its AMM vault is missing", async () => {
    const mint = launch({ onCurve: SOL, inPool: 0n });
    chain.setBalance(configOf(mint).ammVault, chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES));
    expect(await collect(handle, [mint])).toMatchObject({
      success: true,
      collected: "0.6000",
    });
  });

  it("succeeds although trading happens after the simulation", async () => {
    const mint = launch({ onCurve: SOL, inPool: SOL });
    onNext(world.sandbox.rpc, isMethod("sendTransaction"), () => {
      world.sandbox.coins.addFees(mint, SOL);
    });
    // The vault's rent-exempt minimum stays there.
    expect(await collect(handle, [mint])).toMatchObject({ collected: "1.7996" });
  });

  it("does not take what other collects cost the fee payer for rent", async () => {
    const mint = launch({ onCurve: SOL });
    const { feePayer, rpc } = world.sandbox;
    const release = hold(rpc, isMethod("simulateTransaction"));
    const collecting = collect(handle, [mint]);
    await expect.poll(() => rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
    chain.setBalance(feePayer, chain.balance(feePayer) - SOL / 10n);
    release();
    expect(await collecting).toMatchObject({ collected: "0.6000" });
  });
});

describe("what a collect has found out about a shared coin", () => {
  /** The reason in a lookup, and what its vault counts. */
  const found = async (mint: string) => [
    (await lookUp(handle, [mint])).coins[0].reason,
    await vaultOf(handle, [mint]),
  ];

  withOwnWorld(
    "is shown if its simulation fails, and a collect tries again after ten seconds",
    async () => {
      const skip = createSkipTime();
      const mint = launch({ shares: { [handle]: 5_000, [SYSVAR]: 5_000 }, onCurve: SOL });
      expect(await found(mint)).toEqual([null, "0.5000"]);
      expect((await collect(handle, [mint])).success).toBe(false);
      expect(await found(mint)).toEqual(["SHAREHOLDER_BLOCKED", "0.0000"]);
      setSharingConfig(world.sandbox.chain, mint, [{ address: addressOf(handle), bps: 10_000 }]);
      expect((await collect(handle, [mint])).success).toBe(false);
      skip(10_000);
      expect(await collect(handle, [mint])).toMatchObject({ collected: "1.0000" });
      expect(await found(mint)).toEqual(["NOTHING_WAITING", "0.0000"]);
      world.sandbox.coins.addFees(mint, SOL);
      expect(await found(mint)).toEqual([null, "1.0000"]);
    },
  );

  it("is nothing if its simulation distributes nothing although all shareholders have their rent", async () => {
    const mint = launch({ onCurve: SOL });
    world.sandbox.rpc.faults.add({
      when: isMethod("simulateTransaction"),
      // The second time after another read: fees may have arrived elsewhere.
      times: 2,
      then(request) {
        const [, { accounts }] = JSON.parse(request.body).params;
        const lamports = Number(10n * SOL);
        const value = {
          ...{ err: null, logs: [], unitsConsumed: 50_000 },
          accounts: accounts.addresses.map(() => ({ lamports, data: ["", "base64"] })),
          preBalances: Array<number>(64).fill(lamports),
        };
        return rpcResult({ context: { slot: chain.slot("finalized") }, value })(request);
      },
    });
    expect(await collect(handle, [mint])).toMatchObject({ error: "NOTHING_TO_COLLECT" });
    expect(await found(mint)).toEqual([null, "0.6000"]);
    expect(await collect(handle, [mint])).toMatchObject({ collected: "0.6000" });
  });
});

it("ten accounts of one coin are paid by one distribution, and each reports its own part", async () => {
  const handles = Array.from({ length: 10 }, (_, i) => `artist0${10 + i}`);
  const shares = Object.fromEntries(handles.map((each) => [each, 1_000]));
  const mint = launch({ shares, onCurve: SOL, inPool: SOL });
  for (const each of handles) {
    const { creatorVault, address } = world.account(each);
    chain.setBalance(creatorVault, 0n);
    chain.setBalance(address, SOL);
  }
  const { body } = await world.graphql(
    `mutation ($collects: [CollectInput!]!) {
      collectMany(collects: $collects) { success collected txSignature error }
    }`,
    { collects: handles.map((each) => ({ socialId: world.account(each).id, mints: [mint] })) },
  );
  const results = body.data.collectMany;
  expect(results).toEqual(
    handles.map(() => ({
      success: true,
      // The vault's rent-exempt minimum stays there.
      collected: "0.1999",
      txSignature: results[0].txSignature,
      error: null,
    })),
  );
  expect(collects()).toHaveLength(1);
  const gain = (2n * SOL - chain.rentExemptMinimum(0)) / 10n;
  for (const each of handles) expect(chain.balance(addressOf(each))).toBe(SOL + gain);
});

it("a shareholder who is also the curve's creator gets the curve's fees although the pool's, which it shares, cannot be distributed", async () => {
  const mint = newMint();
  const { coins } = world.sandbox;
  const address = addressOf(handle);
  coins.launch({ mint, creator: address, fees: SOL });
  coins.migrate(mint, 2n * SOL);
  setPoolCreator(mint, configOf(mint).address);
  const shareholders = [address, STRANGER].map((each) => ({ address: each, bps: 5_000 }));
  setSharingConfig(world.sandbox.chain, mint, shareholders);
  expect(await coinsOf(handle, [mint])).toContainEqual(["CURVE", "1.0000", 10_000, null]);
  expect(await vaultOf(handle, [mint])).toBe("1.0000");
  expect(await collect(handle, [mint])).toMatchObject({ success: true, collected: "1.0000" });
  expect(await vaultOf(handle, [mint])).toBe("0.0000");
});

it.each<[string, SharedCoin & { inAmm?: bigint; poolCreator?: string }]>([
  ["in a config's AMM vault, of a coin without a pool", { onCurve: SOL, inAmm: SOL }],
  ["only in a config's AMM vault, of a coin without a pool", { inAmm: SOL }],
  [
    "in a config's AMM vault, whose pool has another creator",
    { onCurve: SOL, inPool: SOL, poolCreator: STRANGER, inAmm: SOL },
  ],
  ["in both vaults of a config, of a coin without a pool", { inVault: SOL, inAmm: SOL }],
  ["in a config's AMM vault and its pool", { onCurve: SOL, inPool: SOL, inAmm: SOL }],
  [
    "in a pool that is not worth the rent of a vault",
    { onCurve: SOL, inPool: 10_000_000n, inVault: SOL },
  ],
])(
  "fees shown as collectable are at most what the vault shows and collects move: %s",
  async (_, coin) => {
    const mint = launch(coin);
    const config = configOf(mint);
    // It exists, so that no fees pay its rent.
    chain.setBalance(config.creatorVault, chain.rentExemptMinimum(0) + (coin.inVault ?? 0n));
    if (coin.inAmm) setWrappedSol(chain, config.ammVaultAuthority, coin.inAmm);
    if (coin.poolCreator) setPoolCreator(mint, coin.poolCreator);
    const { balance, coins } = await lookUp(handle, [mint]);
    const vault = Number(balance.lamports.vault);
    const amounts = coins.map(({ collectable, amount }: any) => (collectable ? Number(amount) : 0));
    const shown = amounts.reduce((sum: number, amount: number) => sum + amount);
    expect({ coins, isMore: shown > vault }).toMatchObject({ isMore: false });
    const before = chain.balance(addressOf(handle));
    while ((await collect(handle, [mint])).success);
    const moved = Number(chain.balance(addressOf(handle)) - before);
    expect({ coins, moved }).toEqual({ coins, moved: vault });
  },
);
