import { Keypair, Transaction } from "@solana/web3.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { decodeTransaction } from "../../src/sandbox/chain/wire-transaction.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import {
  collectCreatorFee,
  distributeCreatorFees,
  sharingConfigOf,
  sweepCurve,
  sweepPool,
  toInstruction,
  transferCreatorFeesToPump,
} from "../support/launchpad-instructions.ts";
import { newMint } from "../support/new-mint.ts";
import { compareWithModel } from "../support/platform-states.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
});
afterAll(() => sandbox.close());

it("the stand-ins refuse an instruction with another account in any place", () => {
  const { chain, coins } = sandbox;
  const payer = Keypair.generate();
  const payerAddress = payer.publicKey.toBase58();
  chain.setBalance(payerAddress, 10n ** 12n);
  const [own, shared, creator] = [newMint(), newMint(), newMint()];
  const shareholders = [newMint(), newMint()];
  coins.launch({ mint: own, creator, fees: 10n ** 9n });
  coins.launch({
    ...{ mint: shared, creator, kind: "shared", fees: 10n ** 9n },
    shareholders: shareholders.map((address) => ({ address, bps: 5_000 })),
  });
  for (const mint of [own, shared]) coins.migrate(mint, { fees: 10n ** 9n });
  const config = sharingConfigOf(shared);

  /** The error of a transaction with these instructions, or null. */
  function errorOf(...instructions: ReturnType<typeof toInstruction>[]) {
    chain.advanceSlots(1);
    const transaction = new Transaction({
      feePayer: payer.publicKey,
      ...chain.latestBlockhash("processed"),
    }).add(...instructions);
    transaction.sign(payer);
    const wire = decodeTransaction(transaction.serialize());
    chain.send(wire);
    return chain.landed(wire.signature)!.err;
  }
  for (const listed of [
    sweepPool(payerAddress, own, creator),
    sweepPool(payerAddress, shared, config),
    transferCreatorFeesToPump(creator),
    transferCreatorFeesToPump(config),
    sweepCurve(payerAddress, own, creator),
    sweepCurve(payerAddress, shared, config),
    collectCreatorFee(creator),
    distributeCreatorFees(shared, shareholders),
  ]) {
    for (const [place, [, flags]] of listed.accounts.entries()) {
      const other = listed.accounts.with(place, [newMint(), flags === "sw" ? "w" : flags]);
      expect(errorOf(toInstruction(listed, other)), `${listed.data} ${place}`).not.toBeNull();
    }
    expect(errorOf(toInstruction(listed, listed.accounts))).toBeNull();
  }
});

it.each([5_080, 2_575])(
  "the stand-ins do what the model says at a rent of %i lamports per byte",
  (rate) => {
    compareWithModel(sandbox, rate, 150);
  },
);
