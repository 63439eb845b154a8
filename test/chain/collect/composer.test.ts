import { randomBytes, randomInt } from "node:crypto";
import { PublicKey, type Message, type MessageV1 } from "@solana/web3.js";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createAddresses } from "../../../src/chain/addresses.ts";
import { createComposer, type CollectPart } from "../../../src/chain/collect/message/composer.ts";
import {
  messageOf,
  readMessage,
  toTransaction,
} from "../../../src/chain/collect/message/message.ts";
import { toLamports } from "../../../src/chain/lamports.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import type { Distribution, PlaceSweep } from "../../../src/chain/choose-sweeps.ts";

const programs = {
  escrowProgramId: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  escrowSeed: "social",
};
const addressesOf = createAddresses(programs);
const feePayer = new PublicKey(randomBytes(32)).toBase58();
const composer = createComposer({
  ...{ feePayer, version: () => 1 },
  ...{ minCollectLamports: toLamports(1), maxRentLamports: toLamports(1_000) },
});
const MAX_BYTES = { legacy: 1_232, 1: 4_096 };
const MAX_ACCOUNTS = 64;
const BLOCKHASH = new PublicKey(randomBytes(32)).toBase58();
const ZERO = toLamports(0);

const randomKey = () => new PublicKey(randomBytes(32)).toBase58();
const newAccount = () => addressesOf(randomBytes(8).readBigUInt64LE().toString());
const isChance = () => randomInt(2) === 1;

const placeSweep = (stage: PlaceSweep["stage"], amount = 1): PlaceSweep => ({
  ...{ coin: coinAddressesOf(randomKey()), stage, amount: toLamports(amount), growthRent: ZERO },
});

function distribution(shareholders: readonly string[], amount = 1): Distribution {
  const lamports = toLamports(amount);
  return {
    coin: coinAddressesOf(randomKey()),
    stage: "SHARED",
    ...{ amount: lamports, distributable: lamports, growthRent: ZERO },
    shareholders: shareholders.map((address) => ({ address, bps: 10_000 / shareholders.length })),
    ...{ withCurve: isChance(), withPool: isChance() },
  };
}

/** Each instruction's program, accounts with their rights, and data. */
function instructionsOf(message: Message | MessageV1): string[] {
  const { staticAccountKeys: keys } = message;
  return message.compiledInstructions.map(({ programIdIndex, accountKeyIndexes, data }) =>
    [
      keys[programIdIndex],
      ...[...accountKeyIndexes].map(
        (i) =>
          `${keys[i]!.toBase58()} ${message.isAccountSigner(i)} ${message.isAccountWritable(i)}`,
      ),
      Buffer.from(data).toString("hex"),
    ].join(),
  );
}

function randomPart(): CollectPart {
  const account = newAccount();
  const places = Array.from({ length: randomInt(6) }, () =>
    placeSweep(isChance() ? "CURVE" : "POOL"),
  );
  const shareholders = [account.address, ...Array.from({ length: randomInt(10) }, randomKey)];
  const sweeps = [...(randomInt(4) === 0 ? [distribution(shareholders)] : []), ...places];
  return {
    account,
    sweeps: sweeps.map((sweep) => ({ ...sweep, rent: ZERO })),
    withAmm: isChance(),
    withVaults: isChance(),
  };
}

describe("the composer", () => {
  it.each([
    ["legacy", 2, 14],
    [1, 8, 36],
  ] as const)(
    "knows whether a transaction of version %s fits without compiling it, for 100 random ones",
    (version, few, many) => {
      const fitting = { yes: 0, no: 0 };
      for (let i = 0; i < 100; i++) {
        const parts = Array.from({ length: 1 + randomInt(isChance() ? few : many) }, () =>
          i % 2 === 0 ? randomPart() : { ...randomPart(), sweeps: [] },
        );
        const terms = { version, unitLimit: 1_400_000, price: 10n ** 9n, guard: 10n ** 9n };
        let size = { bytes: Infinity, accounts: Infinity };
        try {
          const base64 = toTransaction(composer.compose(parts, terms), feePayer);
          const accounts = messageOf(base64)!.staticAccountKeys.length;
          size = { bytes: Buffer.from(base64, "base64").length, accounts };
        } catch (error) {
          // The library compiles nothing that has too many accounts or instructions.
          if ((error as Error).name !== "SolanaError") throw error;
        }
        const fits = size.bytes <= MAX_BYTES[version] && size.accounts <= MAX_ACCOUNTS;
        fitting[fits ? "yes" : "no"]++;
        expect(composer.fits(parts, version)).toBe(fits);
      }
      expect(Math.min(fitting.yes, fitting.no)).toBeGreaterThan(10);
    },
  );

  it("composes the same steps in both versions, and a budget of each", () => {
    const terms = { unitLimit: 100_001, price: 10_000n, guard: 7n };
    for (let i = 0; i < 50; i++) {
      const parts = [
        { ...randomPart(), sweeps: [] },
        { ...randomPart(), sweeps: [] },
      ];
      const [legacy, one] = (["legacy", 1] as const).map((version) =>
        readMessage(composer.compose(parts, { ...terms, version }, BLOCKHASH)),
      ) as [Message, MessageV1];
      expect(instructionsOf(one)).toEqual(instructionsOf(legacy).slice(2));
      expect([one.recentBlockhash, legacy.recentBlockhash]).toEqual([BLOCKHASH, BLOCKHASH]);
      expect(one.transactionConfig).toEqual({
        ...{
          computeUnitLimit: 100_001,
          loadedAccountsDataSizeLimit: 64 * 1024 * 1024,
          heapSize: null,
        },
        priorityFee: 1_001,
      });
    }
  });

  it.each([
    ["legacy", 11, 4],
    [1, 30, 13],
  ] as const)(
    "fits accounts into a message of version %s: %i, or %i with AMM vaults",
    (version, plain, amm) => {
      for (const [withAmm, most] of [
        [false, plain],
        [true, amm],
      ] as const) {
        const parts = Array.from({ length: most + 1 }, () => ({
          ...{ account: newAccount(), sweeps: [], withAmm, withVaults: true },
        }));
        expect(composer.fits(parts.slice(1), version)).toBe(true);
        expect(composer.fits(parts, version)).toBe(false);
      }
    },
  );

  it("needs no key of web3.js to choose among the places of 40 coins and 40 shared coins", () => {
    const { choosePart } = composer;
    const account = newAccount();
    const vaults = {
      ...{
        creatorVault: ZERO,
        ammVault: ZERO,
        rentMinimum: ZERO,
        rent: { lamportsPerByteYear: 0, exemptionThreshold: 2 },
        ammMinimum: ZERO,
      },
      missingRent: { CURVE: ZERO, POOL: ZERO },
    };
    const amount = () => 1_000 + randomInt(1_000);
    const shareholders = [account.address, ...Array.from({ length: 9 }, randomKey)];
    const sweeps = Array.from({ length: 40 }, () => [
      ...[placeSweep("CURVE", amount()), placeSweep("POOL", amount())],
      {
        ...distribution(shareholders, amount()),
        withPool: true,
        withoutPool: distribution(shareholders),
      },
    ]).flat();
    // Derives addresses, which are kept.
    const chosen = choosePart(account, sweeps, vaults)!.sweeps;
    expect(chosen.length).toBeGreaterThan(0);

    const [encode, decode] = [
      vi.spyOn(PublicKey.prototype, "toBase58"),
      vi.spyOn(PublicKey.prototype, "toBytes"),
    ];
    onTestFinished(() => void vi.restoreAllMocks());
    expect(choosePart(account, sweeps, vaults)!.sweeps).toEqual(chosen);
    expect([encode.mock.calls.length, decode.mock.calls.length]).toEqual([0, 0]);
  });
});
