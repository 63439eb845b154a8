import { randomBytes, randomInt } from "node:crypto";
import { PublicKey, VersionedMessage, type MessageV1 } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { createAddresses } from "../../../src/chain/launchpad/account-addresses.ts";
import { createComposer } from "../../../src/chain/units/composer.ts";
import { canRun } from "../../../src/chain/units/instruction-costs.ts";
import type { CollectPart } from "../../../src/chain/units/part.ts";
import { messageOf, toTransaction } from "../../../src/chain/units/message.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import {
  toVaults,
  type Distribution,
  type PlaceSweep,
} from "../../../src/chain/launchpad/choose-sweeps.ts";
import type { Stage } from "../../../src/chain/launchpad/fee-accounts.ts";

const programs = {
  escrowProgramId: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  escrowSeed: "social",
};
const addressesOf = createAddresses(programs);
const feePayer = new PublicKey(randomBytes(32)).toBase58();
const composer = createComposer({
  feePayer,
  ...{ minCollectLamports: toLamports(1), maxRentLamports: toLamports(1_000) },
});
const MAX_BYTES = 4_096;
const MAX_ACCOUNTS = 64;
const BLOCKHASH = new PublicKey(randomBytes(32)).toBase58();
const ZERO = toLamports(0);
const VAULTS = toVaults(undefined, undefined, 0);

const randomKey = () => new PublicKey(randomBytes(32)).toBase58();
const newAccount = () => addressesOf(randomBytes(8).readBigUInt64LE().toString());
const isChance = () => randomInt(2) === 1;

const placeSweep = (stage: PlaceSweep["stage"], amount = 1): PlaceSweep => ({
  ...{ coin: coinAddressesOf(randomKey()), stage, amount: toLamports(amount), topUp: ZERO },
});

const BOTH = ["POOL", "CURVE"] as const;

function distribution(
  shareholders: readonly string[],
  amount = 1,
  stages: readonly Stage[] = BOTH.filter(isChance),
): Distribution {
  const lamports = toLamports(amount);
  return {
    coin: coinAddressesOf(randomKey()),
    stage: "SHARED",
    ...{ vaults: VAULTS, amount: lamports, distributable: lamports, topUp: ZERO },
    shareholders: shareholders.map((address) => ({ address, bps: 10_000 / shareholders.length })),
    places: stages.map((stage) => placeSweep(stage)),
  };
}

function randomPart(): CollectPart {
  const account = newAccount();
  const places = Array.from({ length: randomInt(6) }, () =>
    placeSweep(isChance() ? "CURVE" : "POOL"),
  );
  const shareholders = [account.address, ...Array.from({ length: randomInt(10) }, randomKey)];
  const sweeps = [...(randomInt(4) === 0 ? [distribution(shareholders)] : []), ...places];
  return {
    ...{ account, vaults: VAULTS },
    sweeps: sweeps.map((sweep) => ({ ...sweep, rent: ZERO })),
    withAmm: isChance(),
    withVaults: isChance(),
  };
}

describe("the composer", () => {
  it("knows whether a transaction fits without compiling it, for 40 random ones", () => {
    const fitting = { yes: 0, no: 0 };
    for (let i = 0; i < 40; i++) {
      const parts = Array.from({ length: 1 + randomInt(isChance() ? 8 : 36) }, () =>
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
    const parts = [{ ...randomPart(), sweeps: [], withVaults: true }];
    const message = VersionedMessage.deserialize(composer.compose(parts, terms, BLOCKHASH));
    expect(message.recentBlockhash).toBe(BLOCKHASH);
    expect((message as MessageV1).transactionConfig).toEqual({
      computeUnitLimit: 100_001,
      loadedAccountsDataSizeLimit: 64 * 1024 * 1024,
      heapSize: null,
      priorityFee: 1_001,
    });
  });

  it.each([
    [21, "", false],
    [5, " with AMM vaults", true],
  ])("fits %i accounts%s into a message", (most, _, withAmm) => {
    const parts = Array.from({ length: most + 1 }, () => ({
      ...{ account: newAccount(), vaults: VAULTS, sweeps: [], withAmm, withVaults: true },
    }));
    expect(composer.fits(parts.slice(1))).toBe(true);
    expect(composer.fits(parts)).toBe(false);
  });
});
