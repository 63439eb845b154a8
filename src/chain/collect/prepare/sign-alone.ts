import { CollectError } from "../../collect-error.ts";
import type { Lamports } from "../../lamports.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import type { StoredTransaction } from "../locks/account-lock.ts";
import type { Payers } from "../fee-budget.ts";
import type { FeePayer, AccountCost } from "../fee-payer.ts";
import type { WaitingFees } from "../landed-outcome.ts";
import type { Composer } from "../message/composer.ts";
import type { Prospect } from "./prospect.ts";
import type { SimulateAlone } from "./simulate-alone.ts";

/** A transaction that this replica signed, for one of its accounts. */
export interface SignedCollect extends AccountCost {
  readonly transaction: StoredTransaction;
  /** The most that the transaction can cost besides rent; 0 for all its accounts but the first. */
  readonly fee: Lamports;
  readonly hasSweeps: boolean;
  /** The lamports at the address that its owner cannot withdraw. */
  readonly unwithdrawable: Lamports;
  readonly remaining: readonly WaitingFees[];
  /** Call once, with whether the transaction is stored for the account. Resolves to whether it is for all its accounts. */
  isStoredForAll(isStored: boolean): boolean | Promise<boolean>;
}

/** An account whose fees are about to be collected. */
export interface Candidate {
  readonly prospect: Prospect;
  readonly payers: Payers;
  /** Nothing is signed after this. In `performance.now()` time. */
  readonly endsAt: number;
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

  return async ({ prospect, payers, endsAt }: Candidate): Promise<SignedCollect | undefined> => {
    const simulation = await simulateAlone(prospect);
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
      unwithdrawable: prospect.fees.unwithdrawable,
      remaining: [...simulation.remaining, ...prospect.later],
      isStoredForAll: (isStored) => isStored,
    };
  };
}
