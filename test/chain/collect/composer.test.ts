import { randomBytes, randomInt } from "node:crypto";
import { PublicKey, VersionedTransaction } from "@solana/web3.js";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createAddresses } from "../../../src/chain/addresses.ts";
import { createComposer, type CollectPart } from "../../../src/chain/collect/message/composer.ts";
import { createProspects } from "../../../src/chain/collect/prepare/prospect.ts";
import { toLamports } from "../../../src/chain/lamports.ts";
import { createCoinAddresses } from "../../../src/chain/launchpad/coin-addresses.ts";
import { createLaunchpad } from "../../../src/chain/launchpad/instructions.ts";
import type { Distribution, PlaceSweep } from "../../../src/chain/sweeps.ts";
import { AMM, FEES, PUMP } from "../../support/launchpad-instructions.ts";

const programs = {
  launchpadProgramId: PUMP,
  launchpadAmmProgramId: AMM,
  launchpadFeesProgramId: FEES,
  escrowProgramId: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  escrowSeed: "social",
};
const addressesOf = createAddresses(programs);
const coinAddressesOf = createCoinAddresses(programs);
const composer = createComposer({
  launchpad: createLaunchpad(programs),
  feePayer: new PublicKey(randomBytes(32)),
});
const MAX_TRANSACTION_BYTES = 1_232;
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

function randomPart(): CollectPart {
  const account = newAccount();
  const places = Array.from({ length: randomInt(6) }, () => placeSweep(isChance() ? "CURVE" : "POOL"));
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
  it("knows the size of a transaction without serializing it, for 200 random ones", () => {
    const fitting = { yes: 0, no: 0 };
    for (let i = 0; i < 200; i++) {
      const parts = Array.from({ length: 1 + randomInt(isChance() ? 2 : 14) }, () =>
        i % 2 === 0 ? randomPart() : { ...randomPart(), sweeps: [] },
      );
      const message = composer.compose(parts, { unitLimit: 1_400_000, price: 10n ** 9n, guard: 10n ** 9n });
      let bytes = Infinity;
      try {
        bytes = new VersionedTransaction(message).serialize().length;
      } catch (error) {
        // web3.js's buffer is as long as a packet.
        if (!(error instanceof RangeError)) throw error;
      }
      const fits = bytes <= MAX_TRANSACTION_BYTES;
      fitting[fits ? "yes" : "no"]++;
      expect(composer.fits(parts)).toBe(fits);
    }
    expect(Math.min(fitting.yes, fitting.no)).toBeGreaterThan(20);
  });

  it("needs no key of web3.js to choose among the places of 40 coins and 40 shared coins", () => {
    const minLamports = toLamports(1);
    const { choosePart } = createProspects({
      balances: { getUncollectedFees: neverRead, getBalances: neverRead, getUnwithdrawable: neverRead },
      ...{ composer, minLamports, maxRent: toLamports(1_000) },
    });
    const account = newAccount();
    const vaults = {
      ...{ creatorVault: ZERO, ammVault: ZERO, rentMinimum: ZERO, tokenRentMinimum: ZERO, ammMinimum: ZERO },
      missingRent: { creatorVault: ZERO, ammVault: ZERO },
    };
    const amount = () => 1_000 + randomInt(1_000);
    const shareholders = [account.address, ...Array.from({ length: 9 }, randomKey)];
    const sweeps = Array.from({ length: 40 }, () => [
      ...[placeSweep("CURVE", amount()), placeSweep("POOL", amount())],
      { ...distribution(shareholders, amount()), withPool: true, withoutPool: distribution(shareholders) },
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

const neverRead = () => Promise.reject(new Error("must not be read"));
