import { randomBytes } from "node:crypto";
import { PublicKey, type TransactionInstruction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { createAddresses } from "../../../src/chain/launchpad/account-addresses.ts";
import { coinAddressesOf } from "../../../src/chain/launchpad/coin-addresses.ts";
import * as launchpad from "../../../src/chain/launchpad/instructions.ts";
import {
  collectCreatorFee,
  distributeCreatorFees,
  sweepCurve,
  sweepPool,
  toInstruction,
  TOKEN_PROGRAM,
  toTransactionInstruction,
  transferCreatorFeesToPump,
  WSOL,
} from "../../support/launchpad-instructions.ts";
import idl from "./idl.json" with { type: "json" };

const addressesOf = createAddresses({
  escrowProgramId: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  escrowSeed: "social",
});

const randomKey = () => new PublicKey(randomBytes(32)).toBase58();
const cases = Array.from({ length: 20 }, () => {
  const account = addressesOf(randomBytes(8).readBigUInt64LE().toString());
  return { account, payer: randomKey(), coin: coinAddressesOf(randomKey()) };
});

/** All that goes into a transaction, in order. */
const wire = (instruction: launchpad.Instruction) => toWire(toTransactionInstruction(instruction));
const toWire = ({ programId, keys, data }: TransactionInstruction) => [
  programId.toBase58(),
  data.toString("hex"),
  ...keys.map(({ pubkey, isSigner, isWritable }) => [pubkey.toBase58(), isSigner, isWritable]),
];

type Listed = ReturnType<typeof collectCreatorFee>;
const listed = (instruction: Listed) => toWire(toInstruction(instruction, instruction.accounts));

interface IdlAccount {
  readonly name: string;
  readonly writable?: boolean;
  readonly address?: string;
  readonly pda?: {
    readonly seeds: readonly { readonly value?: readonly number[]; readonly path?: string }[];
    readonly program?: { readonly value: readonly number[] };
  };
}

/**
 * An instruction as the IDL defines it; `given` has the accounts that the IDL does not determine,
 * by name.
 */
function fromIdl(name: string, given: Record<string, string>) {
  const { program, discriminator, accounts } = idl.instructions.find(
    (instruction) => instruction.name === name,
  )!;
  const known: Record<string, string> = { ...given, program };
  for (const { name: account, address, pda } of accounts as IdlAccount[]) {
    if (address) known[account] = address;
    if (!pda) continue;
    const seeds = pda.seeds.map(({ value, path }) =>
      value ? Buffer.from(value) : new PublicKey(known[path!]!).toBuffer(),
    );
    const owner = pda.program ? new PublicKey(pda.program.value) : new PublicKey(program);
    known[account] = PublicKey.findProgramAddressSync(seeds, owner)[0].toBase58();
  }
  const keys = (accounts as IdlAccount[]).map((account) => [
    known[account.name],
    false,
    !!account.writable,
  ]);
  return [program, Buffer.from(discriminator).toString("hex"), ...keys];
}

describe("the launch platform's instructions", () => {
  it("equal the documented ones byte for byte, for 20 random accounts and coins", () => {
    for (const { account, payer, coin } of cases) {
      const { address } = account;
      const { mint } = coin;
      expect(wire(launchpad.sweepCurve(payer, account, coin))).toEqual(
        listed(sweepCurve(payer, mint, address)),
      );
      expect(wire(launchpad.sweepPool(payer, account, coin))).toEqual(
        listed(sweepPool(payer, mint, address)),
      );
      expect(wire(launchpad.transferCreatorFeesToPump(account))).toEqual(
        listed(transferCreatorFeesToPump(address)),
      );
      expect(wire(launchpad.collectCreatorFee(account))).toEqual(
        listed(collectCreatorFee(address)),
      );
    }
  });

  it("to collect equal those of the launch platform's IDL, for 20 random accounts", () => {
    for (const { account } of cases) {
      const { address } = account;
      expect(wire(launchpad.collectCreatorFee(account))).toEqual(
        fromIdl("collect_creator_fee", { creator: address }),
      );
      const given = { coin_creator: address, wsol_mint: WSOL, token_program: TOKEN_PROGRAM };
      expect(wire(launchpad.transferCreatorFeesToPump(account))).toEqual(
        fromIdl("transfer_creator_fees_to_pump", given),
      );
    }
  });

  it("to distribute shared fees equal the documented one and that of the IDL, for 20 random coins", () => {
    for (const { coin } of cases) {
      const { mint, sharingConfig } = coin;
      const [shareholder, other] = [randomKey(), randomKey()];
      const built = wire(launchpad.distributeCreatorFees(coin, [shareholder, other]));
      expect(built).toEqual(listed(distributeCreatorFees(mint, [shareholder, other])));
      expect(built).toEqual([
        ...fromIdl("distribute_creator_fees", {
          mint,
          "bonding_curve.creator": sharingConfig.address,
        }),
        [shareholder, false, true],
        [other, false, true],
      ]);
    }
  });

  it("to sweep name the AMM's config by its published address", () => {
    const { account, payer, coin } = cases[0]!;
    const config = launchpad.sweepPool(payer, account, coin).accounts[1]!.address;
    expect(config).toBe("ADyA8hdefvWN2dbGGWFotbzWxrAvLW83WG6QCVXvJKqw");
  });
});
