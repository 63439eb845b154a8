import { CollectError } from "../../collect-error.ts";
import type { Lamports } from "../../lamports.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import type { TransactionError } from "../../rpc/transaction-error.ts";
import type { WaitingFees } from "../../sweeps.ts";
import type { StoredTransaction } from "../locks/account-lock.ts";
import type { FeePayer, AccountCost } from "../fee-payer.ts";
import type { Composer } from "../message/composer.ts";
import type { Candidate } from "./prospect.ts";
import type { SimulateAlone } from "./simulate-alone.ts";

/** A transaction that this replica signed, for one of its accounts. */
export interface SignedCollect extends AccountCost {
  readonly transaction: StoredTransaction;
  /** The most that the transaction can cost besides rent; 0 for all its accounts but the first. */
  readonly fee: Lamports;
  readonly hasSweeps: boolean;
  /** The mints of the coins that made it fail with `err`, each once; empty if none can be named. */
  findCulprits(err: TransactionError): readonly string[];
  /** The lamports at the address that its owner cannot withdraw. */
  readonly unwithdrawable: Lamports;
  readonly remaining: readonly WaitingFees[];
  /** Call once, with whether the transaction is stored for the account. Resolves to whether it is for all its accounts. */
  isStoredForAll(isStored: boolean): boolean | Promise<boolean>;
}

export type GetBlockhash = Rpc["getLatestBlockhash"];

/** Throws {@link CollectError} `timed-out` after `endsAt`, a `performance.now()` time. */
export function assertInTime(endsAt: number): void {
  if (performance.now() > endsAt) throw new CollectError({ kind: "timed-out" });
}

/** Returns a function that simulates and signs the collect of one account; undefined when it would move too little. */
export function createSignAlone(needs: {
  simulateAlone: SimulateAlone;
  composer: Composer;
  feePayer: FeePayer;
  getBlockhash: GetBlockhash;
}) {
  const { simulateAlone, composer, feePayer, getBlockhash } = needs;

  return async (candidate: Candidate): Promise<SignedCollect | undefined> => {
    const { prospect, payers, endsAt } = candidate;
    const simulation = await simulateAlone(candidate);
    if (!simulation) return undefined;
    const { part, terms, spendable, rent, moved } = simulation;

    const { blockhash, lastValidBlockHeight } = await getBlockhash();
    assertInTime(endsAt);
    const allTerms = { ...terms, guard: feePayer.guardOf(spendable) };
    const message = composer.compose([part], allTerms, blockhash);
    const { address } = part.account;
    const sweeps = part.sweeps.map(({ coin, stage }) => ({ address, mint: coin.mint, stage }));
    const { base64, signature, ...signed } = await feePayer.sign(message, {
      spendable,
      rent,
      sweeps,
      accounts: [{ moved, payers }],
    });
    const hasSweeps = sweeps.length > 0;
    const sweptMints = hasSweeps ? composer.sweptMints([part], allTerms) : undefined;
    return {
      ...signed.costs[0]!,
      transaction: { base64, signature, lastValidBlockHeight, sweptMints },
      fee: signed.fee,
      hasSweeps,
      findCulprits(err) {
        const steps = composer.findCulprits([part], allTerms, err).map(({ step }) => step);
        // A distribution has several steps.
        return [...new Set(steps.flatMap((step) => (step.kind === "sweep" ? step.sweep.coin.mint : [])))];
      },
      unwithdrawable: prospect.fees.unwithdrawable,
      remaining: [...simulation.remaining, ...prospect.later],
      isStoredForAll: (isStored) => isStored,
    };
  };
}
