import fc from "fast-check";
import { PublicKey } from "@solana/web3.js";
import { expect, it } from "vitest";
import { leastDistribution, toSharedFees } from "../../../src/chain/balances/shared-fees.ts";
import { createAddresses } from "../../../src/chain/launchpad/account-addresses.ts";
import {
  inAmm,
  rentOf as rentOfSweeps,
  sweepsOf,
  type Distribution,
} from "../../../src/chain/launchpad/choose-sweeps.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import { decodeCoin, toCoinFees, type Coin } from "../../../src/chain/launchpad/coin-fees.ts";
import { PLACES, STAGES, type Stage } from "../../../src/chain/launchpad/fee-accounts.ts";
import * as model from "../../support/platform-model.ts";
import type { PlatformState } from "../../support/platform-model.ts";
import {
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_PROGRAM_ID,
} from "../../../src/chain/launchpad/program-ids.ts";
import { TOKEN_PROGRAM_ID, WRAPPED_SOL_MINT } from "../../../src/chain/launchpad/token-accounts.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { rentMinimumOf } from "../../../src/chain/primitives/rent.ts";
import { createComposer } from "../../../src/chain/units/composer.ts";
import { newMint } from "../../support/new-mint.ts";
import { casesOf } from "../../support/platform-states.ts";

const SOL = 1_000_000_000n;
const ONE = toLamports(1);
const account = createAddresses({
  escrowProgramId: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  escrowSeed: "social",
})("1");
const coinAddresses = coinAddressesOf(newMint());
const composer = createComposer({
  ...{ feePayer: newMint(), minCollectLamports: ONE, maxRentLamports: toLamports(SOL) },
});

const toAccount = (lamports: bigint, owner: string, data = Buffer.alloc(0)) => ({
  ...{ lamports: toLamports(lamports), isRounded: false, owner, data },
});

/** A curve or pool in the platform's layout, with `u64s` by offset. */
function toPlace(
  stage: Stage,
  { lamports, bytes }: { readonly lamports: bigint; readonly bytes: number },
  u64s: Readonly<Record<number, bigint>>,
  creator: string,
) {
  const { layout } = PLACES[stage];
  const data = Buffer.alloc(Math.max(bytes, layout.bytes));
  layout.discriminator.copy(data);
  data.set(new PublicKey(creator).toBytes(), layout.creator);
  data.set(new PublicKey(WRAPPED_SOL_MINT).toBytes(), layout.quoteMint);
  for (const [offset, amount] of Object.entries(u64s))
    data.writeBigUInt64LE(amount, Number(offset));
  const owner = stage === "CURVE" ? LAUNCHPAD_PROGRAM_ID : LAUNCHPAD_AMM_PROGRAM_ID;
  return toAccount(lamports, owner, data.subarray(0, bytes));
}

/** What a read shows of a state: the coin, and the vaults of its creator. */
function read(state: PlatformState, creator: string): Coin {
  const { curve, pool, ammVault, ammTokens, rent } = state;
  const tokens = Buffer.alloc(ammTokens === undefined ? 0 : 165);
  if (ammTokens !== undefined) tokens.writeBigUInt64LE(ammTokens, 64);
  const curveAmounts = { 32: curve.reserves, 125: curve.creatorFee, 133: curve.protocolFees };
  return decodeCoin(
    coinAddresses,
    [
      toPlace("CURVE", curve, curveAmounts, creator),
      toPlace("POOL", pool, { 279: pool.creatorFees }, creator),
      undefined,
      toAccount(state.creatorVault, "11111111111111111111111111111111"),
      ammVault > 0n ? toAccount(ammVault, TOKEN_PROGRAM_ID, tokens) : undefined,
    ],
    rent,
  );
}

/** Receivers that can receive, pools that hold their fees, and no gifts that nobody plans with. */
function toPlannable(state: PlatformState): PlatformState {
  const { rent, pool, curve, ammTokens, ammVault } = state;
  const token = rentMinimumOf(rent, 165);
  const rich = <T extends { bytes: number }>(each: T) => ({ ...each, lamports: 100n * SOL });
  return {
    ...state,
    ammVaultAuthority: 0n,
    ammVault: ammTokens === undefined && ammVault > token ? token : ammVault,
    pool: { ...pool, wrappedSol: pool.creatorFees },
    curve: { ...curve, lamports: curve.lamports + curve.creatorFee },
    receiver: rich(state.receiver),
    shareholders: state.shareholders.map(rich),
  };
}

const SWEEPS = { CURVE: model.sweepCurve, POOL: model.sweepPool };

const states = fc
  .constantFrom(5_080, 2_575)
  .chain(casesOf)
  .map(({ state }) => toPlannable(state));

it("an account's collect moves and costs to the lamport what the model says", () => {
  let moving = 0;
  fc.assert(
    fc.property(states, (state) => {
      const coin = read(state, account.address);
      const sweeps = toCoinFees(coin, account.address).flatMap(({ sweep }) => sweep ?? []);
      const part = composer.choosePart(account, sweeps, coin.vaults);
      if (!part) return;
      moving++;
      const chosen = STAGES.filter((stage) => sweepsOf(stage, part.sweeps).length > 0);
      const swept = chosen.reduce((current, stage) => SWEEPS[stage](current), state);
      const after = model.collectCreatorFee(
        part.withAmm ? model.transferCreatorFeesToPump(swept) : swept,
      );
      expect(after.receiver.lamports - state.receiver.lamports).toBe(part.amount);
      expect(after.paid).toBe(rentOfSweeps(part.sweeps));
      expect(part.withAmm).toBe(inAmm(part.sweeps, coin.vaults) > 0n);
    }),
    { numRuns: 500 },
  );
  expect(moving).toBeGreaterThan(100);
});

it("a distribution moves and costs to the lamport what the model says", () => {
  const creator = coinAddresses.sharingConfig.address;
  let moving = 0;
  fc.assert(
    fc.property(states, (state) => {
      const shareholders = state.shareholders.map(({ bps }, i) => ({
        address: i === 0 ? account.address : newMint(),
        bps,
      }));
      const [fees] = toSharedFees(
        read(state, creator),
        { isPaused: false, shareholders },
        {
          ...{ address: account.address, feePayer: newMint(), minCollectLamports: ONE },
          maxRentLamports: toLamports(SOL),
          reasonFound: () => undefined,
        },
      );
      const sweep = fees?.sweep as Distribution | undefined;
      if (!sweep || sweep.distributable === 0n) return;
      moving++;
      const swept = sweep.places.reduce((current, { stage }) => {
        const next = SWEEPS[stage](current);
        return stage === "POOL" ? model.transferCreatorFeesToPump(next) : next;
      }, state);
      const after = model.distributeCreatorFees(swept);
      const gains = after.shareholders.map(
        ({ lamports }, i) => lamports - state.shareholders[i]!.lamports,
      );
      expect(gains[0]).toBe(sweep.amount);
      expect(gains).toEqual(
        shareholders.map(({ bps }) => (sweep.distributable * BigInt(bps)) / 10_000n),
      );
      expect(after.paid).toBe(sweep.topUp);
    }),
    { numRuns: 500 },
  );
  expect(moving).toBeGreaterThan(100);
});

it("the least distribution is the least that the model pays", () => {
  fc.assert(
    fc.property(states, casesOf(5_080), (plannable, { state: { shareholders } }) => {
      const { rent } = plannable;
      const shares = shareholders.map(({ bps }) => ({ address: "", bps }));
      const accounts = shareholders.map(({ lamports, bytes: space }) => ({
        ...{ lamports: toLamports(lamports), space },
      }));
      const least = leastDistribution(shares, accounts, rent);
      const distribute = (amount: bigint) => {
        const creatorVault = rentMinimumOf(rent, 0) + amount;
        const curve = { ...plannable.curve, creatorFee: 0n };
        const state = { ...plannable, curve, shareholders, creatorVault };
        return creatorVault - model.distributeCreatorFees(state).creatorVault;
      };
      expect(least - distribute(least)).toBeLessThan(BigInt(shareholders.length));
      if (least > 0n) expect(distribute(least - 1n)).toBe(0n);
    }),
  );
});
