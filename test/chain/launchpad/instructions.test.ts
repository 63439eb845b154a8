import { randomBytes } from "node:crypto";
import { PublicKey, type TransactionInstruction } from "@solana/web3.js";
import { expect, it } from "vitest";
import { createAddresses } from "../../../src/chain/launchpad/account-addresses.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import * as launchpad from "../../../src/chain/launchpad/instructions.ts";
import {
  collectCreatorFee,
  distributeCreatorFees,
  sweepCurve,
  sweepPool,
  toInstruction,
  toTransactionInstruction,
  transferCreatorFeesToPump,
} from "../../support/launchpad-instructions.ts";

const addressesOf = createAddresses({
  escrowProgramId: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  escrowSeed: "social",
});

const randomKey = () => new PublicKey(randomBytes(32)).toBase58();
const newCase = () => {
  const account = addressesOf(randomBytes(8).readBigUInt64LE().toString());
  return { account, payer: randomKey(), coin: coinAddressesOf(randomKey()) };
};

/** All that goes into a transaction, in order. */
const wire = (instruction: launchpad.Instruction) => toWire(toTransactionInstruction(instruction));
const toWire = ({ programId, keys, data }: TransactionInstruction) => [
  programId.toBase58(),
  data.toString("hex"),
  ...keys.map(({ pubkey, isSigner, isWritable }) => [pubkey.toBase58(), isSigner, isWritable]),
];

type Listed = ReturnType<typeof collectCreatorFee>;
const listed = (instruction: Listed) => toWire(toInstruction(instruction, instruction.accounts));

it("the launch platform's instructions equal the documented ones byte for byte, for 20 random accounts and coins", () => {
  for (let i = 0; i < 20; i++) {
    const { account, payer, coin } = newCase();
    const { address } = account;
    const { mint } = coin;
    const shareholders = [randomKey(), randomKey()];
    for (const [built, documented] of [
      [launchpad.sweepCurve(payer, account, coin), sweepCurve(payer, mint, address)],
      [launchpad.sweepPool(payer, account, coin), sweepPool(payer, mint, address)],
      [launchpad.transferCreatorFeesToPump(account), transferCreatorFeesToPump(address)],
      [launchpad.collectCreatorFee(account), collectCreatorFee(address)],
      [
        launchpad.distributeCreatorFees(coin, shareholders),
        distributeCreatorFees(mint, shareholders),
      ],
    ] as const)
      expect(wire(built)).toEqual(listed(documented));
  }
});

it("a sweep of a pool names the AMM's config by its published address", () => {
  const { account, payer, coin } = newCase();
  const config = launchpad.sweepPool(payer, account, coin).accounts[1]!.address;
  expect(config).toBe("ADyA8hdefvWN2dbGGWFotbzWxrAvLW83WG6QCVXvJKqw");
});
