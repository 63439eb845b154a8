import { randomInt } from "node:crypto";
import { PublicKey, VersionedMessage, type MessageV1 } from "@solana/web3.js";
import { beforeEach, describe, expect, it } from "vitest";
import { createAddresses } from "../../../src/chain/launchpad/account-addresses.ts";
import { toVaults, type PlaceSweep } from "../../../src/chain/launchpad/choose-sweeps.ts";
import {
  coinAddressesOf,
  type CoinAddresses,
} from "../../../src/chain/launchpad/coin-addresses.ts";
import type { Stage } from "../../../src/chain/launchpad/fee-accounts.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { createComposer } from "../../../src/chain/units/composer.ts";
import { canRun, unitLimitOf } from "../../../src/chain/units/instruction-costs.ts";
import { messageOf, toTransaction } from "../../../src/chain/units/message.ts";
import type { CollectPart } from "../../../src/chain/units/part.ts";

const RENT = 5_080;
const addressesOf = createAddresses({
  escrowProgramId: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  escrowSeed: "social",
});
const account = addressesOf("1");
const holding = (lamports: number, bytes = 0) => ({
  ...{ lamports: toLamports(lamports), data: Buffer.alloc(bytes) },
});
const EXISTING = toVaults(holding(650_240), holding(1_488_440, 165), RENT);
const MISSING = toVaults(undefined, undefined, RENT);
const WITHOUT_AMM_VAULT = toVaults(holding(650_240), undefined, RENT);

/** Deriving their addresses takes long, so transactions share them. */
const coins: CoinAddresses[] = [];
/** The coins and accounts that a transaction has. */
let used = 0;
beforeEach(() => {
  used = 0;
});

function sweep(stage: Stage, topUp = 0): PlaceSweep & { rent: PlaceSweep["topUp"] } {
  const coin = (coins[used++] ??= coinAddressesOf(PublicKey.unique().toBase58()));
  const lamports = toLamports(topUp);
  return { coin, stage, amount: toLamports(1), topUp: lamports, rent: lamports };
}
function distribution(shareholders: number, stages: readonly Stage[], vaults = EXISTING) {
  const { coin } = sweep("CURVE");
  return {
    ...{ coin, stage: "SHARED" as const, vaults, places: stages.map((stage) => sweep(stage)) },
    ...{ amount: toLamports(1), distributable: toLamports(1) },
    ...{ topUp: toLamports(0), rent: toLamports(0) },
    shareholders: Array.from({ length: shareholders }, () => ({
      address: PublicKey.unique().toBase58(),
      bps: 10_000 / shareholders,
    })),
  };
}
const part = (some: Partial<CollectPart> = {}): CollectPart => ({
  ...{ account, vaults: EXISTING, sweeps: [], withAmm: false, withVaults: true },
  ...some,
});
const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
const curves = (count: number, topUp = 0) => times(count, () => sweep("CURVE", topUp));
const pools = (count: number, topUp = 0) => times(count, () => sweep("POOL", topUp));

describe("a transaction's instructions, inner ones included, count as if fees waited everywhere:", () => {
  it.each<[name: string, parts: (more: number) => CollectPart[]]>([
    ["21 collects", (more) => times(21 + more, () => part())],
    [
      "5 collects with the AMM's transfer",
      (more) => times(5 + more, () => part({ withAmm: true })),
    ],
    ["30 curves", (more) => [part({ sweeps: curves(30 + more) })]],
    [
      "29 curves, if the creator vault is missing",
      (more) => [part({ vaults: MISSING, sweeps: curves(29 + more) })],
    ],
    ["20 curves to top up", (more) => [part({ sweeps: curves(20 + more, 7) })]],
    ["17 pools", (more) => [part({ withAmm: true, sweeps: pools(17 + more) })]],
    [
      "15 pools, if the AMM vault is missing",
      (more) => [part({ withAmm: true, vaults: MISSING, sweeps: pools(15 + more) })],
    ],
    ["13 pools to grow", (more) => [part({ withAmm: true, sweeps: pools(13 + more, 7) })]],
    [
      "9 coins with fees in both places, if the AMM vault is missing",
      (more) => [
        part({
          withAmm: true,
          vaults: WITHOUT_AMM_VAULT,
          sweeps: times(9 + more, () => [sweep("CURVE"), sweep("POOL")]).flat(),
        }),
      ],
    ],
    [
      "two distributions to ten with all sweeps",
      (more) => [
        part({
          withVaults: false,
          sweeps: times(2 + more, () => distribution(10, ["POOL", "CURVE"])),
        }),
      ],
    ],
  ])("%s fit, and one more does not", (_, parts) => {
    expect(canRun(parts(0))).toBe(true);
    expect(canRun(parts(1))).toBe(false);
  });
});

describe("the compute-unit limit", () => {
  it.each<[name: string, parts: CollectPart[], least: number]>([
    ["a collect", [part()], 35_500],
    ["21 collects", times(21, () => part()), 345_500],
    ["a collect with the AMM's transfer", [part({ withAmm: true })], 80_500],
    ["a curve", [part({ sweeps: curves(1) })], 71_500],
    ["a pool", [part({ withAmm: true, sweeps: pools(1) })], 106_500],
    [
      "a pool, if the AMM vault is missing",
      [part({ withAmm: true, vaults: MISSING, sweeps: pools(1) })],
      131_500,
    ],
    [
      "a distribution to ten with all sweeps",
      [part({ withVaults: false, sweeps: [distribution(10, ["POOL", "CURVE"])] })],
      185_000,
    ],
  ])("of %s has a minimum, and a margin above the simulation", (_, parts, least) => {
    expect(unitLimitOf(parts, 1)).toBe(least);
    expect(unitLimitOf(parts, least)).toBe(Math.ceil(least * 1.2));
    expect(unitLimitOf(parts, 500_000)).toBe(600_000);
    expect(unitLimitOf(parts, 1_300_000)).toBe(1_400_000);
  });
});

describe("the composer", () => {
  const feePayer = PublicKey.unique().toBase58();
  const composer = createComposer({
    feePayer,
    ...{ minCollectLamports: toLamports(1), maxRentLamports: toLamports(1_000) },
  });
  const MAX_BYTES = 4_096;
  const MAX_ACCOUNTS = 64;
  const isChance = () => randomInt(2) === 1;
  const randomStages = () => (["POOL", "CURVE"] as const).filter(isChance);
  const randomPart = () =>
    part({
      account: addressesOf(String(++used)),
      vaults: MISSING,
      sweeps: [
        ...times(Number(randomInt(4) === 0), () => distribution(1 + randomInt(10), randomStages())),
        ...times(randomInt(6), () => sweep(isChance() ? "CURVE" : "POOL")),
      ],
      ...{ withAmm: isChance(), withVaults: isChance() },
    });

  it("knows whether a transaction fits without compiling it, for 40 random ones", () => {
    const fitting = { yes: 0, no: 0 };
    for (let i = 0; i < 40; i++) {
      used = 0;
      const parts = times(1 + randomInt(isChance() ? 8 : 36), () =>
        i % 2 === 0 ? randomPart() : { ...randomPart(), sweeps: [] },
      );
      const terms = { unitLimit: 1_400_000, priorityFee: 10n ** 9n, guard: 10n ** 9n };
      let size = { bytes: Infinity, accounts: Infinity };
      try {
        const base64 = toTransaction(composer.compose(parts, terms), feePayer);
        const accounts = messageOf(base64)!.staticAccountKeys.length;
        size = { bytes: Buffer.from(base64, "base64").length, accounts };
      } catch (error) {
        // The library compiles nothing that has too many accounts or instructions.
        if ((error as Error).name !== "SolanaError") throw error;
      }
      const fits = size.bytes <= MAX_BYTES && size.accounts <= MAX_ACCOUNTS && canRun(parts);
      fitting[fits ? "yes" : "no"]++;
      expect(composer.fits(parts)).toBe(fits);
    }
    expect(Math.min(fitting.yes, fitting.no)).toBeGreaterThan(4);
  });

  it("composes a message with the blockhash and the budget", () => {
    const terms = { unitLimit: 100_001, priorityFee: 1_001n, guard: 7n };
    const blockhash = PublicKey.unique().toBase58();
    const message = VersionedMessage.deserialize(composer.compose([part()], terms, blockhash));
    expect(message.recentBlockhash).toBe(blockhash);
    expect((message as MessageV1).transactionConfig).toEqual({
      ...{ computeUnitLimit: 100_001, loadedAccountsDataSizeLimit: 64 * 1024 * 1024 },
      ...{ heapSize: null, priorityFee: 1_001 },
    });
  });
});
