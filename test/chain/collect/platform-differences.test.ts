import { describe, expect, it } from "vitest";
import { findDifferences } from "../../../src/chain/collect/platform-differences.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { DerivedCreator } from "../../../src/chain/launchpad/vaults.ts";
import { newMint } from "../../support/new-mint.ts";

const RENT = { lamportsPerByteYear: 5_080, exemptionThreshold: 1 };
/** An account's minimum at this rent. */
const R = 650_240n;
/** A token account's minimum at the same rent. */
const TOKEN = 1_488_440n;
const SOL = 1_000_000_000n;
const FEE = 5_200n;

const feePayer = newMint();
const account = new DerivedCreator(newMint());
const coin = coinAddressesOf(newMint());
const { sharingConfig } = coin;
const [alice, bob] = [newMint(), newMint()];

/** Before and after, by address. */
type Balances = Record<string, readonly [bigint, bigint]>;

type Part = Parameters<typeof findDifferences>[0];

const collect: Part = { account, sweeps: [], withVaults: true };
const sweepOf = (stage: string) => ({ coin, stage, amount: SOL, rent: 0n });
const curveCollect: Part = { ...collect, sweeps: [sweepOf("CURVE")] } as never;
const distributionTo = (...shareholders: readonly (readonly [string, number])[]): Part =>
  ({
    ...collect,
    withVaults: false,
    sweeps: [
      {
        ...sweepOf("SHARED"),
        shareholders: shareholders.map(([address, bps]) => ({ address, bps })),
      },
    ],
  }) as never;

function differencesIn(part: Part, balances: Balances, signedRent = 0n): string[] {
  const all = { [feePayer]: [SOL, SOL - FEE] as const, ...balances };
  const landed = {
    fee: toLamports(FEE),
    balances: new Map(
      Object.entries(all).map(([address, [before, after]]) => [
        address,
        { before: toLamports(before), after: toLamports(after) },
      ]),
    ),
  };
  return findDifferences(part, landed, { feePayer, signedRent, rent: RENT });
}

describe("a collect that does what the platform's tested programs do", () => {
  it.each<[string, Part, Balances, bigint?]>([
    [
      "empties the vault",
      collect,
      { [account.creatorVault]: [R + SOL, R], [account.address]: [R, R + SOL] },
    ],
    [
      "comes after somebody else's",
      collect,
      { [account.creatorVault]: [R, R], [account.address]: [R + SOL, R + SOL] },
    ],
    [
      "pays nothing to an emptied address",
      collect,
      { [account.creatorVault]: [R + 500n, R + 500n], [account.address]: [0n, 0n] },
    ],
    [
      "empties the AMM vault, with lamports of its authority",
      collect,
      {
        [account.creatorVault]: [R, R],
        [account.ammVault]: [TOKEN + 7_000n, TOKEN],
        [account.ammVaultAuthority]: [3n, 0n],
        [account.address]: [R, R + 7_003n],
      },
    ],
    [
      "leaves the AMM vault, whose amount does not fill the creator vault",
      curveCollect,
      {
        [account.creatorVault]: [0n, R],
        [account.ammVault]: [TOKEN + 500_000n, TOKEN + 500_000n],
        [coin.curve]: [2n * SOL, SOL],
        [account.address]: [R, R + SOL],
        [feePayer]: [SOL, SOL - FEE - R],
      },
      R,
    ],
    [
      "pays the rent of a vault that fees reached after the simulation",
      curveCollect,
      {
        [account.creatorVault]: [0n, R],
        [coin.curve]: [2n * SOL, SOL],
        [account.address]: [R, R + SOL],
        [feePayer]: [SOL, SOL - FEE - R],
      },
    ],
    [
      "divides what the vault holds, rounded down",
      distributionTo([alice, 3_333], [bob, 6_667]),
      {
        [sharingConfig.creatorVault]: [R + 1_000_001n, R + 1n],
        [alice]: [R, R + 333_300n],
        [bob]: [0n, 666_700n],
      },
    ],
    [
      "divides to an address that is listed twice",
      distributionTo([alice, 3_333], [bob, 3_334], [alice, 3_333]),
      {
        [sharingConfig.creatorVault]: [R + 1_000_001n, R + 1n],
        [alice]: [R, R + 666_600n],
        [bob]: [R, R + 333_400n],
      },
    ],
    [
      "pays a shareholder that is one of the coin's accounts, which is not judged",
      distributionTo([alice, 5_000], [coin.poolTokens, 5_000]),
      {
        [sharingConfig.creatorVault]: [R + SOL, R],
        [alice]: [R, R + SOL / 2n],
        [coin.poolTokens]: [TOKEN, TOKEN + SOL / 2n],
      },
    ],
    [
      "divides by a config that leaves a half, which is not judged",
      distributionTo([alice, 5_000]),
      { [sharingConfig.creatorVault]: [R + SOL, R + SOL / 2n], [alice]: [R, R + SOL / 2n] },
    ],
  ])("is no difference: it %s", (_, part, balances, signedRent) => {
    expect(differencesIn(part, balances, signedRent)).toEqual([]);
  });
});

describe("a collect that does something else", () => {
  it.each<[string, Part, Balances, string]>([
    [
      "leaves fees in the vault",
      collect,
      { [account.creatorVault]: [R + SOL, R + 5n], [account.address]: [R, R + SOL - 5n] },
      "the creator vault was left with 5 lamports above its minimum",
    ],
    [
      "keeps a part",
      collect,
      { [account.creatorVault]: [R + SOL, R], [account.address]: [R, R + SOL - 7n] },
      "1000000000 lamports were taken, and 999999993 paid out",
    ],
    [
      "makes the fee payer pay more rent",
      curveCollect,
      {
        [account.creatorVault]: [R, R],
        [coin.curve]: [2n * SOL, SOL + 9n],
        [account.address]: [R, R + SOL],
        [feePayer]: [SOL, SOL - FEE - 9n],
      },
      "the fee payer paid 9 lamports of rent instead of 0",
    ],
  ])("is a difference: it %s", (_, part, balances, difference) => {
    expect(differencesIn(part, balances)).toEqual([difference]);
  });
});
