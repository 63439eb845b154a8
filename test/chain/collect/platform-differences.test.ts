import { describe, expect, it } from "vitest";
import { findDifferences } from "../../../src/chain/collect/platform-differences.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { DerivedCreator } from "../../../src/chain/launchpad/vaults.ts";
import { newMint } from "../../support/new-mint.ts";

/** An account's rent-exempt minimum. */
const R = 650_240n;
/** A token account's minimum. */
const TOKEN = 1_488_440n;
const SOL = 1_000_000_000n;

const account = new DerivedCreator(newMint());
const coin = coinAddressesOf(newMint());
const { sharingConfig } = coin;
const [alice, bob] = [newMint(), newMint()];

/** Before and after, by address. */
type Balances = Record<string, readonly [bigint, bigint]>;

type Part = Parameters<typeof findDifferences>[0];

const collect = { account, sweeps: [], vaults: { rentMinimum: toLamports(R) } } as unknown as Part;
const sweepOf = (stage: string) => ({ coin, stage, amount: SOL, rent: 0n });
const curveCollect: Part = { ...collect, sweeps: [sweepOf("CURVE")] } as never;
const distributionTo = (...shareholders: readonly (readonly [string, number])[]): Part =>
  ({
    ...collect,
    sweeps: [
      {
        ...sweepOf("SHARED"),
        shareholders: shareholders.map(([address, bps]) => ({ address, bps })),
      },
    ],
  }) as never;

function differencesIn(part: Part, balances: Balances, moreRent = 0n): string[] {
  const entries = Object.entries(balances).map(
    ([address, [before, after]]) =>
      [address, { before: toLamports(before), after: toLamports(after) }] as const,
  );
  return findDifferences(part, new Map(entries), moreRent);
}

describe("a collect that does what the platform's tested programs do", () => {
  it.each<[string, Part, Balances, bigint?]>([
    [
      "empties the vault",
      collect,
      { [account.creatorVault]: [R + SOL, R], [account.address]: [R, R + SOL] },
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
      "pays the rent of a vault that fees reached after the simulation",
      curveCollect,
      {
        [account.creatorVault]: [0n, R],
        [coin.curve]: [2n * SOL, SOL],
        [account.address]: [R, R + SOL],
      },
      R,
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
      "pays a shareholder that is one of the coin's accounts",
      distributionTo([alice, 5_000], [coin.poolTokens, 5_000]),
      {
        [sharingConfig.creatorVault]: [R + SOL, R],
        [alice]: [R, R + SOL / 2n],
        [coin.poolTokens]: [TOKEN, TOKEN + SOL / 2n],
      },
    ],
  ])("is no difference: it %s", (_, part, balances, moreRent) => {
    expect(differencesIn(part, balances, moreRent)).toEqual([]);
  });
});

describe("a collect that does something else", () => {
  const stranger = newMint();
  it.each<[string, Part, Balances, bigint, string]>([
    [
      "leaves fees in the vault",
      collect,
      { [account.creatorVault]: [R + SOL, R + 5n], [account.address]: [R, R + SOL - 5n] },
      0n,
      "the creator vault was left with 5 lamports above its minimum",
    ],
    [
      "pays somebody else",
      collect,
      {
        [account.creatorVault]: [R + SOL, R],
        [account.address]: [R, R + SOL - 7n],
        [stranger]: [R, R + 7n],
      },
      0n,
      `${stranger} received 7 lamports`,
    ],
    [
      "makes the fee payer pay more rent",
      curveCollect,
      {
        [account.creatorVault]: [R, R],
        [coin.curve]: [2n * SOL, SOL + 9n],
        [account.address]: [R, R + SOL],
      },
      9n,
      "the fee payer paid 9 lamports more rent than expected",
    ],
  ])("is a difference: it %s", (_, part, balances, moreRent, difference) => {
    expect(differencesIn(part, balances, moreRent)).toEqual([difference]);
  });
});
