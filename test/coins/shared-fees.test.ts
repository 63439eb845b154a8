import { PublicKey } from "@solana/web3.js";
import { beforeEach, describe, expect } from "vitest";
import { TOKEN_ACCOUNT_BYTES } from "../../src/chain/launchpad/token-accounts.ts";
import { setAmmVault } from "../../src/sandbox/chain/creator-fees.ts";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import { coinFees } from "../support/coin-balances.ts";
import { newMint } from "../support/new-mint.ts";
import { rpcError, rpcResult } from "../support/rpc-answers.ts";
import { hold, isMethod, onNext } from "../support/sandbox.ts";
import { createSkipTime } from "../support/skip-time.ts";
import { withNewWorld, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;
/** The least lamports of which 60% are worth a collect. */
const ENOUGH = 166_667n;
/** An account that nothing can write to, and that reading does not tell from others. */
const SYSVAR = "SysvarC1ock11111111111111111111111111111111";
/** A program that a distribution does not call. */
const PROGRAM = "EscrowSandbox1111111111111111111111111111111";
/** More than the 150 blocks in which a blockhash is valid and the 32 slots to finality together. */
const SLOTS_PAST_BLOCKHASH = 200;
const USDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

const it = withNewWorld({ RATE_LIMIT_MAX: "1000" });
let chain: World["sandbox"]["chain"];
beforeEach(() => {
  ({ chain } = world.sandbox);
});

const addressOf = (handle: string) => world.account(handle).address;
const bandCoin = () => world.account("band").coins[0]!.mint;
const query = (mints: readonly string[]) => mints.map((mint) => `&mint=${mint}`).join("");
const lookUp = async (handle: string, mints: readonly string[]) =>
  (await world.request(`/wallet/lookup?handle=${handle}${query(mints)}`)).body;
const coinsOf = async (handle: string, mints: readonly string[]): Promise<unknown[]> =>
  (await lookUp(handle, mints)).coins.map(({ stage, waiting, shareBps, reason }: any) => [
    stage,
    waiting,
    shareBps,
    reason,
  ]);
const vaultOf = async (handle: string, mints: readonly string[]): Promise<string> =>
  (await lookUp(handle, mints)).balance.vault;
const collect = async (handle: string, mints: readonly string[]) =>
  (await world.collect(world.account(handle).id, {}, mints)).body;
const collects = () => world.sandbox.landedCollects();
const configOf = (mint: string) => world.sandbox.coins.addressesOf(mint).sharingConfig;
const newAddress = () => PublicKey.unique().toBase58();

interface SharedCoin {
  /** By address or handle, in ten-thousandths. */
  shares?: Record<string, number>;
  onCurve?: bigint;
  /** Undefined if the coin has not migrated. */
  inPool?: bigint;
  inVault?: bigint;
  quoteMint?: string;
}

/**
 * The shares of `artist001` (by default as large as the others') and of new addresses, which have 1
 * SOL each.
 */
function sharesWith(count: number, own = 10_000 / (count + 1)): Record<string, number> {
  const others = Array.from({ length: count }, newAddress);
  for (const other of others) chain.setBalance(other, SOL);
  return {
    artist001: own,
    ...Object.fromEntries(others.map((other) => [other, (10_000 - own) / count])),
  };
}

/** A coin that `artist001` shares with a stranger, who has 1 SOL. */
function launch(coin: SharedCoin = {}): string {
  const {
    shares = { artist001: 6_000, [STRANGER]: 4_000 },
    onCurve = 0n,
    inPool,
    inVault = 0n,
    quoteMint,
  } = coin;
  const mint = newMint();
  const { coins } = world.sandbox;
  const shareholders = Object.entries(shares).map(([name, bps]) => {
    const known = world.sandbox.accounts.find(({ handle }) => handle === name);
    return { address: known?.address ?? name, bps };
  });
  coins.launch({ mint, creator: STRANGER, kind: "shared", shareholders, fees: onCurve, quoteMint });
  if (inPool !== undefined) coins.migrate(mint, { fees: inPool });
  if (inVault > 0n)
    chain.setBalance(configOf(mint).creatorVault, chain.rentExemptMinimum(0) + inVault);
  return mint;
}
/** An account without fees of its own. */
beforeEach(() => {
  const { creatorVault, address } = world.account("artist001");
  chain.setBalance(creatorVault, 0n);
  chain.setBalance(address, SOL);
});

describe("a lookup that names a coin whose fees are shared", () => {
  it("shows each shareholder its share, and counts it in the vault", async () => {
    const mint = bandCoin();
    expect(await coinsOf("band", [mint])).toEqual([["CURVE", "0.6000", 5_000, null]]);
    expect(await vaultOf("band", [mint])).toBe("0.8000");
    expect(await coinsOf("graduate", [mint])).toEqual([["CURVE", "0.3600", 3_000, null]]);
    expect(await vaultOf("graduate", [mint])).toBe("1.8600");
  });

  it("has an entry for the curve, the pool and the config's vaults", async () => {
    const mint = launch({ onCurve: SOL, inPool: 2n * SOL, inVault: 3n * SOL });
    expect(await coinsOf("artist001", [mint])).toEqual([
      ["CURVE", "0.6000", 6_000, null],
      ["POOL", "1.2000", 6_000, null],
      ["SHARED", "1.8000", 6_000, null],
    ]);
    expect(await vaultOf("artist001", [mint])).toBe("3.6000");
  });

  it("shows nobody else's share", async () => {
    const mint = launch({ onCurve: SOL });
    expect(await coinsOf("creator", [mint])).toEqual([["CURVE", "1.0000", 0, "SHARED"]]);
    expect(await vaultOf("creator", [mint])).toBe("3.1000");
    expect(JSON.stringify(await lookUp("artist001", [mint]))).not.toContain(STRANGER);
  });

  it("says why a collect would move nothing", async () => {
    const fees = { onCurve: SOL };
    const { coins } = world.sandbox;
    const paused = launch(fees);
    coins.setSharing(paused, { isPaused: true });
    const cases = {
      PAUSED: [paused],
      BELOW_SHARING_MINIMUM: [
        // The account's part would be too small for a collect.
        launch({ onCurve: ENOUGH - 1n }),
        launch({ shares: { artist001: 1, [STRANGER]: 9_999 }, onCurve: 999_990_000n }),
      ],
      // The fee payer must not be an account of what it signs.
      SHAREHOLDER_BLOCKED: [
        launch({ shares: { artist001: 5_000, [world.sandbox.feePayer]: 5_000 }, ...fees }),
      ],
      OTHER_CURRENCY: [launch({ quoteMint: USDC, onCurve: 1_000_000n })],
      NOTHING_WAITING: [launch()],
    };
    for (const [reason, mints] of Object.entries(cases))
      for (const mint of mints) {
        const [coin] = (await lookUp("artist001", [mint])).coins;
        expect([coin.collectable, coin.reason]).toEqual([false, reason]);
        expect(await vaultOf("artist001", [mint])).toBe("0.0000");
      }
    const enough = launch({ inVault: ENOUGH });
    // Only a simulation tells whether another shareholder can be paid.
    const unknown = launch({ shares: { artist001: 9_999, [newAddress()]: 1 }, ...fees });
    expect(await coinsOf("artist001", [enough, unknown])).toEqual([
      ["CURVE", "0.0000", 6_000, "NOTHING_WAITING"],
      ["SHARED", "0.0001", 6_000, null],
      ["CURVE", "0.9999", 9_999, null],
    ]);
  });

  it("does not depend on what the other shareholders hold", async () => {
    chain.setBalance(STRANGER, 2n ** 60n);
    const mint = launch({ onCurve: SOL });
    expect(await coinsOf("artist001", [mint])).toEqual([["CURVE", "0.6000", 6_000, null]]);
    expect(await collect("artist001", [mint])).toMatchObject({ collected: "0.6000" });
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
    expect(await vaultOf("artist001", [mint])).toBe("3.6000");
    expect(await collect("artist001", [mint])).toMatchObject({
      collected: "3.6000",
      newBalance: "4.6000",
    });
    expect(chain.balance(addressOf("artist001"))).toBe(SOL + ((6n * SOL + 9n) * 6n) / 10n);
    expect(collects()).toHaveLength(1);
  });

  it("moves nothing for anybody else", async () => {
    const mint = launch({ onCurve: SOL });
    expect(await collect("newcomer", [mint])).toMatchObject({ error: "NOTHING_TO_COLLECT" });
    expect(collects()).toHaveLength(0);
  });

  it("does not pay others for a crumb", async () => {
    const mint = launch({ shares: { artist001: 1, [STRANGER]: 9_999 }, onCurve: 900_000_000n });
    expect(await collect("artist001", [mint])).toMatchObject({ error: "NOTHING_TO_COLLECT" });
    expect(collects()).toHaveLength(0);
    expect(world.chainCalls()).not.toContain("simulateTransaction");
  });

  it("leaves out coins whose distribution pays nothing in the simulation, and collects the rest", async () => {
    // The part of an address that does not exist is less than its rent.
    const below = Array.from({ length: 3 }, () =>
      launch({ shares: { artist001: 9_999, [newAddress()]: 1 }, onCurve: SOL }),
    );
    const good = launch({ onCurve: SOL });
    expect(await collect("artist001", [...below, good])).toMatchObject({ collected: "0.6000" });
    for (const mint of below) expect(coinFees(chain, mint).curve).toBe(SOL);
    expect(collects()).toHaveLength(1);
  });

  it("leaves out a coin whose distribution fails in the simulation, and collects the rest", async () => {
    const blocked = launch({ shares: { artist001: 9_999, [PROGRAM]: 1 }, onCurve: SOL });
    const ofFeePayer = launch({
      shares: { artist001: 5_000, [world.sandbox.feePayer]: 5_000 },
      onCurve: SOL,
    });
    const paused = launch({ onCurve: SOL });
    world.sandbox.coins.setSharing(paused, { isPaused: true });
    const good = launch({ onCurve: SOL });
    expect(await collect("artist001", [blocked, ofFeePayer, paused, good])).toMatchObject({
      collected: "0.6000",
    });
    expect(collects()).toHaveLength(1);
  });

  it("is nothing if its pool is not worth the rent of a vault, and the share of the rest is too small", async () => {
    const mint = launch({ inVault: ENOUGH - 1n, inPool: 10_000_000n });
    expect(await coinsOf("artist001", [mint])).toEqual([
      ["POOL", "0.0060", 6_000, "RENT_TOO_HIGH"],
      ["SHARED", "0.0000", 6_000, "RENT_TOO_HIGH"],
    ]);
    expect(await vaultOf("artist001", [mint])).toBe("0.0000");
    chain.setBalance(world.account("artist001").creatorVault, chain.rentExemptMinimum(0) + SOL);
    expect(await collect("artist001", [mint])).toMatchObject({
      collected: "1.0000",
      remaining: "0.0000",
    });
    expect(await collect("artist001", [mint])).toMatchObject({ error: "NOTHING_TO_COLLECT" });
    const { creatorVault } = configOf(mint);
    // A lamport stays in the vault, because the platform rounds all parts down.
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + ENOUGH + 1n);
    expect(await collect("artist001", [mint])).toMatchObject({ collected: "0.0001" });
    expect(coinFees(chain, mint).pool).toBe(10_000_000n);
  });

  it("is collected although a stranger has sent lamports to where its AMM vault is missing", async () => {
    const mint = launch({ onCurve: SOL, inPool: 0n });
    chain.setBalance(configOf(mint).ammVault, chain.rentExemptMinimum(TOKEN_ACCOUNT_BYTES));
    expect(await collect("artist001", [mint])).toMatchObject({
      success: true,
      collected: "0.6000",
    });
  });

  it("is collected although a larger one, beside which it does not fit into the transaction, fails the simulation", async () => {
    const withOthers = (count: number) => {
      const others = Array.from({ length: count }, newAddress);
      for (const other of others) chain.setBalance(other, SOL);
      return Object.fromEntries(["artist001", ...others].map((name) => [name, 1_000]));
    };
    const failing = launch({ shares: { ...withOthers(8), [SYSVAR]: 1_000 }, onCurve: 10n * SOL });
    const mint = launch({ shares: withOthers(9), onCurve: SOL });
    expect(await collect("artist001", [failing, mint])).toMatchObject({ collected: "0.1000" });
  });

  it("fits into a transaction with ten shareholders, also in a pool", async () => {
    const shares = sharesWith(9);
    const mint = launch({ shares, inPool: SOL });
    expect(await collect("artist001", [mint])).toMatchObject({
      collected: "0.0999",
      remaining: "0.0000",
    });
    const both = launch({ shares, onCurve: SOL, inPool: SOL });
    expect(await vaultOf("artist001", [both])).toBe("0.1999");
    expect(await collect("artist001", [both])).toMatchObject({
      collected: "0.1999",
      remaining: "0.0000",
    });
  });

  it("takes a transaction for each coin", async () => {
    const shares = sharesWith(9);
    const mints = Array.from({ length: 2 }, () => launch({ shares, onCurve: SOL, inPool: SOL }));
    for (const mint of mints) setAmmVault(chain, configOf(mint), 0n);
    expect(await collect("artist001", mints)).toMatchObject({
      ...{ collected: "0.1999", remaining: "0.1999" },
    });
    expect(await collect("artist001", mints)).toMatchObject({
      ...{ collected: "0.1999", remaining: "0.0000" },
    });
  });

  it("succeeds although trading happens after the simulation", async () => {
    const mint = launch({ onCurve: SOL, inPool: SOL });
    onNext(world.sandbox.rpc, isMethod("sendTransaction"), () => {
      world.sandbox.coins.addFees(mint, SOL);
    });
    // The vault's rent-exempt minimum stays there.
    expect(await collect("artist001", [mint])).toMatchObject({ collected: "1.7996" });
  });

  it("backs off after a failure on the chain, and the vault does not", async () => {
    const mint = launch({ onCurve: SOL });
    onNext(world.sandbox.rpc, isMethod("sendTransaction"), () => {
      world.sandbox.coins.setSharing(mint, { isPaused: true });
    });
    expect(await collect("artist001", [mint])).toMatchObject({ error: "COLLECT_FAILED" });
    world.sandbox.coins.setSharing(mint, { isPaused: false });
    expect(await collect("artist001", [mint])).toMatchObject({ error: "COLLECT_FAILED" });
    chain.setBalance(world.account("artist001").creatorVault, chain.rentExemptMinimum(0) + SOL);
    expect(await collect("artist001", [mint])).toMatchObject({ collected: "1.0000" });
    expect(collects().map(({ err }) => err === null)).toEqual([false, true]);
  });

  it("is left out by the next collect if its transaction does not land", async () => {
    const mint = launch({ onCurve: SOL });
    chain.setBalance(world.account("artist001").creatorVault, chain.rentExemptMinimum(0) + SOL);
    const { rpc } = world.sandbox;
    const lift = rpc.faults.add({
      when: isMethod("sendTransaction"),
      then: rpcError({ code: -32005 }),
    });
    const lost = collect("artist001", [mint]);
    await expect.poll(() => world.chainCalls()).toContain("sendTransaction");
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    expect(await lost).toMatchObject({ error: "COLLECT_FAILED" });
    lift();
    expect(await collect("artist001", [mint])).toMatchObject({
      collected: "1.0000",
      remaining: "0.6000",
    });
    expect(await collect("artist001", [mint])).toMatchObject({
      collected: "0.6000",
      remaining: "0.0000",
    });
  });

  it("does not take what other collects cost the fee payer for rent", async () => {
    const mint = launch({ onCurve: SOL });
    const { feePayer, rpc } = world.sandbox;
    const release = hold(rpc, isMethod("simulateTransaction"));
    const collecting = collect("artist001", [mint]);
    await expect.poll(() => rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
    chain.setBalance(feePayer, chain.balance(feePayer) - SOL / 10n);
    release();
    expect(await collecting).toMatchObject({ collected: "0.6000" });
  });

  it("is listed as COLLECTED in the history of each account that it pays", async () => {
    await collect("band", []);
    await collect("band", [bandCoin()]);
    for (const [handle, amount] of [
      ["band", "0.6000"],
      ["graduate", "0.3600"],
    ] as const) {
      const { body } = await world.graphql(
        `{ wallet(handle: "${handle}") { history { nodes { kind amount } } } }`,
      );
      expect(body.data.wallet.history.nodes).toContainEqual({ kind: "COLLECTED", amount });
    }
  });
});

describe("what a collect has found out about a shared coin", () => {
  /** The reason in a lookup, and what its vault counts. */
  const found = async (mint: string) => [
    (await lookUp("artist001", [mint])).coins[0].reason,
    await vaultOf("artist001", [mint]),
  ];
  /**
   * Answers the next simulations: they change nothing, and show the accounts only if they are
   * `shown`.
   */
  const simulateNothing = (shown: boolean, times = 1) =>
    world.sandbox.rpc.faults.add({
      when: isMethod("simulateTransaction"),
      times,
      then(request) {
        const [, { accounts }] = JSON.parse(request.body).params;
        const lamports = Number(10n * SOL);
        const held = accounts.addresses.map(() => ({ lamports, data: ["", "base64"] }));
        const value = {
          ...{ err: null, logs: [], unitsConsumed: 50_000, accounts: shown ? held : null },
          preBalances: Array<number>(64).fill(lamports),
        };
        return rpcResult({ context: { slot: chain.slot("finalized") }, value })(request);
      },
    });

  it.each([
    ["a shareholder that nothing can write to", SYSVAR],
    ["a program as a shareholder", PROGRAM],
  ])(
    "is shown if %s fails its simulation, and a collect tries again after ten seconds",
    async (_, other) => {
      const skip = createSkipTime();
      const mint = launch({ shares: { artist001: 5_000, [other]: 5_000 }, onCurve: SOL });
      expect(await found(mint)).toEqual([null, "0.5000"]);
      expect((await collect("artist001", [mint])).success).toBe(false);
      expect(await found(mint)).toEqual(["SHAREHOLDER_BLOCKED", "0.0000"]);
      world.sandbox.coins.setSharing(mint, {
        shareholders: [{ address: addressOf("artist001"), bps: 10_000 }],
      });
      expect((await collect("artist001", [mint])).success).toBe(false);
      skip(10_000);
      expect(await collect("artist001", [mint])).toMatchObject({ collected: "1.0000" });
      expect(await found(mint)).toEqual(["NOTHING_WAITING", "0.0000"]);
      world.sandbox.coins.addFees(mint, SOL);
      expect(await found(mint)).toEqual([null, "1.0000"]);
    },
  );

  it("is nothing if its simulation distributes nothing although all shareholders have their rent", async () => {
    const mint = launch({ onCurve: SOL });
    // The second time after another read: fees may have arrived elsewhere.
    simulateNothing(true, 2);
    expect(await collect("artist001", [mint])).toMatchObject({ error: "NOTHING_TO_COLLECT" });
    expect(await found(mint)).toEqual([null, "0.6000"]);
    expect(await collect("artist001", [mint])).toMatchObject({ collected: "0.6000" });
  });

  it("is nothing if reading shows the reason", async () => {
    const mint = launch({ onCurve: ENOUGH - 1n });
    chain.setBalance(configOf(mint).creatorVault, chain.rentExemptMinimum(0));
    expect((await collect("artist001", [mint])).success).toBe(false);
    world.sandbox.coins.addFees(mint, 1n);
    expect(await vaultOf("artist001", [mint])).toBe("0.0001");
  });

  it("is nothing that can be found out from a simulation without the accounts", async () => {
    const mint = launch({ onCurve: SOL });
    simulateNothing(false);
    expect(await collect("artist001", [mint])).toMatchObject({ collected: "0.6000" });
  });
});

describe("several accounts of one coin", () => {
  const COLLECT_MANY = `mutation ($collects: [CollectInput!]!) {
    collectMany(collects: $collects) { success collected txSignature error }
  }`;

  it("are paid by one distribution, and each reports its own part", async () => {
    const handles = Array.from({ length: 10 }, (_, i) => `artist0${10 + i}`);
    const mint = launch({
      shares: Object.fromEntries(handles.map((handle) => [handle, 1_000])),
      onCurve: SOL,
    });
    for (const handle of handles) {
      const { creatorVault, address } = world.account(handle);
      chain.setBalance(creatorVault, 0n);
      chain.setBalance(address, SOL);
    }
    const { body } = await world.graphql(COLLECT_MANY, {
      collects: handles.map((handle) => ({ socialId: world.account(handle).id, mints: [mint] })),
    });
    const results = body.data.collectMany;
    expect(results).toEqual(
      handles.map(() => ({
        success: true,
        collected: "0.1000",
        txSignature: results[0].txSignature,
        error: null,
      })),
    );
    expect(collects()).toHaveLength(1);
    for (const handle of handles) expect(chain.balance(addressOf(handle))).toBe(SOL + SOL / 10n);
  });

  it("with fees in their own vaults collect these first", async () => {
    const handles = ["artist001", "band"];
    const mint = launch({ shares: { artist001: 5_000, band: 5_000 }, onCurve: SOL });
    for (const handle of handles)
      chain.setBalance(world.account(handle).creatorVault, chain.rentExemptMinimum(0) + SOL);
    const entries = handles.map((handle) => ({
      socialId: world.account(handle).id,
      mints: [mint],
    }));
    for (const collected of ["1.0000", "0.5000"]) {
      const { body } = await world.graphql(COLLECT_MANY, { collects: entries });
      expect(body.data.collectMany).toMatchObject(Array(2).fill({ success: true, collected }));
    }
    expect(handles.map((handle) => chain.balance(addressOf(handle)))).toEqual([
      2_500_000_000n,
      1_800_000_000n,
    ]);
  });
});
