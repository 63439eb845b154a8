import { Keypair } from "@solana/web3.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { decodeFeeAccount, type Stage } from "../../src/chain/launchpad/fee-accounts.ts";
import { toLamports } from "../../src/chain/primitives/lamports.ts";
import { decodeSharingConfig } from "../../src/chain/launchpad/sharing-config.ts";
import { setWrappedSol } from "../../src/sandbox/chain/accounts.ts";
import { coinFees } from "../support/coin-balances.ts";
import {
  creatorVaultOf,
  curveOf,
  poolOf,
  sharingConfigOf,
  sweepCurve,
  sweepPool,
  toInstruction,
  transferCreatorFeesToPump,
  WSOL,
} from "../support/launchpad-instructions.ts";
import {
  buyOnCurve,
  configurePlatform,
  createCoin,
  createCoinAccount,
  createSharingConfig,
  createSocialFees,
  PLATFORM,
  migrate,
  sendSigned,
  socialFeesOf,
  tradeInPool,
  updateShares,
} from "../support/platform-instructions.ts";
import { startWorld, type World } from "../support/world.ts";

const SOL = 1_000_000_000n;
/** Tokens of a coin, which has 6 decimals. */
const TOKENS = 1_000_000n;

let world: World;
const trader = Keypair.generate();
const TRADER = trader.publicKey.toBase58();
beforeAll(async () => {
  expect(process.env.PLATFORM_PROGRAMS, "PLATFORM_PROGRAMS").toMatch(/./);
  world = await startWorld();
  const { chain } = world.sandbox;
  configurePlatform(chain);
  chain.setBalance(TRADER, 10_000n * SOL);
  for (const owner of [TRADER, PLATFORM]) setWrappedSol(chain, owner, 1_000n * SOL);
});
afterAll(() => world.close());

const chain = () => world.sandbox.chain;
const read = (address: string) => {
  const account = chain().account(address)!;
  const lamports = toLamports(account.lamports);
  return { ...account, lamports, data: Buffer.from(account.data) };
};
/** The sandbox's, which is mainnet's. */
const RENT = 5_080;
const decode = (stage: Stage, mint: string) =>
  decodeFeeAccount(stage, read(stage === "CURVE" ? curveOf(mint) : poolOf(mint)), RENT);

/** A new coin of `creator`, of which the trader has bought some on its curve. */
function launch(creator: string): string {
  const key = Keypair.generate();
  const mint = key.publicKey.toBase58();
  sendSigned(chain(), [trader, key], createCoin(TRADER, mint, creator));
  sendSigned(chain(), [trader], createCoinAccount(TRADER, mint));
  buy(mint);
  return mint;
}
const buy = (mint: string, amount = 350_000_000n * TOKENS) => {
  sendSigned(chain(), [trader], buyOnCurve(TRADER, mint, amount, 500n * SOL));
};
function complete(mint: string): void {
  buy(mint, read(curveOf(mint)).data.readBigUInt64LE(24)); // all that is left
  sendSigned(chain(), [trader], migrate(TRADER, mint));
}
function tradeInPools(mint: string): void {
  const amount = 100_000_000n * TOKENS;
  sendSigned(chain(), [trader], tradeInPool("buy", TRADER, mint, amount, 400n * SOL));
  sendSigned(chain(), [trader], tradeInPool("sell", TRADER, mint, amount / 2n, 0n));
}

/** What the API shows of a coin to an account, and what it has received. */
async function see(handle: string, mint: string) {
  const { body } = await world.graphql(
    `query ($handle: String!, $mints: [String!]!) {
      wallet(handle: $handle) {
        balance(mints: $mints) { vaultLamports }
        coins(mints: $mints) { stage amount collectable reason }
        coinsSeen
        history { nodes { kind lamports } }
      }
    }`,
    { handle, mints: [mint] },
  );
  expect(body.errors).toBeUndefined();
  return body.data.wallet;
}

/** Collects a coin for an account; what its address has gained must be what the API said before. */
async function collect(handle: string, mint: string) {
  const { address, id } = world.account(handle);
  const { waiting } = await previewOf(handle, mint);
  const before = chain().balance(address);
  const { body } = await world.collect(id, {}, [mint]);
  expect(body).toMatchObject({ success: true });
  const gained = chain().balance(address) - before;
  expect(gained).toBe(waiting);
  const { history, coinsSeen } = await see(handle, mint);
  expect(history.nodes[0]).toEqual({ kind: "COLLECTED", lamports: String(gained) });
  expect(coinsSeen).toContain(mint);
  return gained;
}
const previewOf = async (handle: string, mint: string) => {
  const { balance, coins } = await see(handle, mint);
  return { waiting: BigInt(balance.vaultLamports), coins };
};

it("a coin is created, bought out, migrated and traded in its pool, and every fee is collected", async () => {
  const { address } = world.account("newcomer");
  const mint = launch(address);
  const curve = read(curveOf(mint));
  expect(curve.data).toHaveLength(166);
  const { curve: fee } = coinFees(chain(), mint);
  expect(fee).toBeGreaterThan(0n);
  expect(decode("CURVE", mint)).toEqual({
    creator: address,
    quoteMint: WSOL,
    waiting: fee,
    isComplete: false,
    isCashback: false,
    isHolderReward: false,
    topUp: 0n,
  });
  const reserves = curve.data.readBigUInt64LE(32);
  const protocolFees = curve.data.readBigUInt64LE(133);
  expect(curve.lamports).toBe(chain().rentExemptMinimum(166) + reserves + fee + protocolFees);
  expect((await previewOf("newcomer", mint)).coins).toMatchObject([
    { stage: "CURVE", amount: String(fee), collectable: true },
  ]);
  expect(await collect("newcomer", mint)).toBe(fee);

  complete(mint);
  const waitingOnCurve = coinFees(chain(), mint).curve;
  expect(decode("CURVE", mint)).toMatchObject({
    creator: address,
    waiting: waitingOnCurve,
    isComplete: true,
  });
  expect(read(poolOf(mint)).data).toHaveLength(287);
  expect(read(poolOf(mint)).lamports).toBe(chain().rentExemptMinimum(287));
  tradeInPools(mint);
  const { pool } = coinFees(chain(), mint);
  expect(pool).toBeGreaterThan(0n);
  expect(decode("POOL", mint)).toEqual({
    creator: address,
    quoteMint: WSOL,
    waiting: pool,
    isComplete: false,
    isCashback: false,
    isHolderReward: false,
    topUp: 0n,
  });
  expect((await previewOf("newcomer", mint)).coins).toMatchObject([
    { stage: "CURVE", amount: String(waitingOnCurve) },
    { stage: "POOL", amount: String(pool) },
  ]);
  const virtualReserves = () => read(poolOf(mint)).data.readBigInt64LE(245);
  const earlierReserves = virtualReserves();
  expect(await collect("newcomer", mint)).toBe(waitingOnCurve + pool);
  expect(coinFees(chain(), mint)).toEqual({ curve: 0n, pool: 0n });
  expect(virtualReserves()).toBe(earlierReserves + pool);
});

/** Makes ten shareholders of a coin: two accounts, two social-fee addresses, and six others. */
function share(creator: Keypair, mint: string, hasPool: boolean) {
  const founder = creator.publicKey.toBase58();
  // Of two networks, for the same user.
  const socialFees = [0, 1].map((platform) => {
    sendSigned(chain(), [trader], createSocialFees(TRADER, mint.slice(0, 20), platform));
    return socialFeesOf(mint.slice(0, 20), platform);
  });
  const others = Array.from({ length: 6 }, () => Keypair.generate().publicKey.toBase58());
  for (const other of others) chain().setBalance(other, SOL);
  const addresses = [
    world.account("artist001").address,
    world.account("artist002").address,
    ...socialFees,
    ...others,
  ];
  const shareholders = addresses.map((address, i) => ({ address, bps: i === 0 ? 3_700 : 700 }));
  // Nothing may wait on the coin.
  const sweeps = [sweepCurve(TRADER, mint, founder)];
  if (hasPool) sweeps.push(sweepPool(TRADER, mint, founder), transferCreatorFeesToPump(founder));
  sendSigned(chain(), [trader], ...sweeps.map((sweep) => toInstruction(sweep, sweep.accounts)));
  sendSigned(chain(), [creator], createSharingConfig(founder, mint, hasPool));
  const config = read(sharingConfigOf(mint));
  expect(config.data).toHaveLength(1_024);
  expect(config.lamports).toBe(chain().rentExemptMinimum(1_024));
  expect([config.data[9], config.data[75]]).toEqual([2, 0]); // the version; the admin is not revoked
  expect(decodeSharingConfig(config, mint)).toEqual({
    isPaused: false,
    shareholders: [{ address: founder, bps: 10_000 }],
  });
  sendSigned(chain(), [creator], updateShares(founder, mint, [founder], shareholders, hasPool));
  expect(decodeSharingConfig(read(sharingConfigOf(mint)), mint)).toEqual({
    isPaused: false,
    shareholders,
  });
  expect(read(sharingConfigOf(mint)).data[75]).toBe(1);
  expect(decode("CURVE", mint)!.creator).toBe(sharingConfigOf(mint));
  for (const address of socialFees) expect(read(address).data).toHaveLength(179);
  return shareholders;
}

it.each([false, true])(
  "ten shareholders are paid by one collect of a coin (that has migrated before: %s), and see it",
  async (hasPool) => {
    const creator = Keypair.generate();
    const founder = creator.publicKey.toBase58();
    chain().setBalance(founder, SOL);
    const mint = launch(founder);
    if (hasPool) {
      complete(mint);
      tradeInPools(mint);
    }
    const shareholders = share(creator, mint, hasPool);
    if (hasPool) {
      expect(decode("POOL", mint)).toMatchObject({
        creator: sharingConfigOf(mint),
        topUp: 0n,
      });
      expect(read(poolOf(mint)).data).toHaveLength(301);
    } else {
      buy(mint);
      complete(mint);
    }
    tradeInPools(mint);
    const { curve, pool } = coinFees(chain(), mint);
    expect(pool).toBeGreaterThan(0n);
    const before = shareholders.map(({ address }) => chain().balance(address));
    expect((await see("artist001", mint)).coins).toMatchObject(
      Array<object>(curve > 0n ? 2 : 1).fill({ collectable: true, reason: null }),
    );
    await world.collect(world.account("artist001").id);
    await world.collect(world.account("artist002").id);
    const start = shareholders.map(({ address }) => chain().balance(address));
    expect(start.slice(2)).toEqual(before.slice(2));
    // What moves first to the config's vault pays for the vault.
    const vault = chain().balance(creatorVaultOf(sharingConfigOf(mint)));
    const distributable = vault + curve + pool - chain().rentExemptMinimum(0);
    await collect("artist001", mint);
    expect(shareholders.map(({ address }, i) => chain().balance(address) - start[i]!)).toEqual(
      shareholders.map(({ bps }) => (distributable * BigInt(bps)) / 10_000n),
    );
    const { history } = await see("artist002", mint);
    expect(history.nodes[0]).toEqual({
      kind: "COLLECTED",
      lamports: String((distributable * 700n) / 10_000n),
    });
  },
);
