import type { LRUCache } from "lru-cache";
import type { Logger } from "../../../observability/log.ts";
import { memoize } from "../../../store/memoize.ts";
import { CollectError } from "../../collect-error.ts";
import { toLamports, type Lamports } from "../../lamports.ts";
import { priorityFee } from "../../priority-fee.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import { isOfVersion } from "../../rpc/rpc-error.ts";
import { isFeePayerShort, type TransactionError } from "../../rpc/transaction-error.ts";
import { rentOf, type WaitingFees } from "../../sweeps.ts";
import { AccountsRefused, type AccountCost, type FeePayer } from "../fee-payer.ts";
import type { StoredTransaction } from "../claims.ts";
import type { CollectPart, Composer } from "../message/composer.ts";
import type { VersionChoice } from "../message/message-version.ts";
import type { createDrafts, Draft } from "./draft.ts";
import type { Candidate } from "./prospect.ts";
import type { Price, Simulated, Simulator } from "./simulator.ts";

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
  isStoredForAll(isStored: boolean): Promise<boolean>;
}

/** What became of a candidate: undefined when too little would move. */
export type PlanResult = SignedCollect | undefined | Error;

/**
 * The part of the time between two polls for a landed transaction in which signed transactions share a blockhash.
 * Less than 1, so that an account's next transaction never has the same bytes as its last.
 */
const BLOCKHASH_MAX_AGE = 3 / 4;
/** How many times several accounts are tried together; then each gets its own transaction, so that none waits longer. */
const MAX_ATTEMPTS = 3;
/** An account whose price is more than this many times the lowest of the others gets its own transaction. */
const MAX_PRICE_RATIO = 4n;

/**
 * Returns a function that plans and signs a transaction for a list of candidates, usually one: drafts what it does for
 * each, simulates it once for all, leaves out what fails, and chooses the price. Candidates that do not fit together get
 * several transactions.
 *
 * A transaction is all or nothing, so an account must not be able to fail the others. One of several gets its own
 * transaction, and is added to `apart`, if it fails the simulation, would move too little, or needs a far higher price.
 */
export function createPlanner(needs: {
  rpc: Pick<Rpc, "getLatestBlockhash">;
  createDraft: ReturnType<typeof createDrafts>;
  simulator: Simulator;
  composer: Composer;
  versions: VersionChoice;
  feePayer: FeePayer;
  priorityFeeFloorMicrolamports: bigint;
  /** Between two polls for a landed transaction. */
  pollMs: number;
  /** By address. */
  apart: LRUCache<string, true>;
  log: Logger;
}) {
  const {
    rpc,
    createDraft,
    simulator,
    composer,
    versions,
    feePayer,
    priorityFeeFloorMicrolamports,
    pollMs,
    apart,
    log,
  } = needs;
  const getBlockhash = memoize(() => rpc.getLatestBlockhash(), BLOCKHASH_MAX_AGE * pollMs);

  /** Signs the transaction for all drafts. Throws {@link AccountsRefused}, or as the fee payer does. */
  async function sign(
    drafts: readonly Draft[],
    parts: readonly CollectPart[],
    simulated: Simulated,
    terms: Price,
    { blockhash, lastValidBlockHeight }: Awaited<ReturnType<Rpc["getLatestBlockhash"]>>,
  ): Promise<SignedCollect[]> {
    const left = simulated.after(feePayer.publicKey.toBase58());
    const { rentMinimum } = drafts[0]!.candidate.prospect.fees.vaults;
    // The simulation pays the base fee only: the priority fee depends on the units that it measures.
    const spendable =
      left === undefined ? undefined : left - priorityFee(terms.price, terms.unitLimit) - rentMinimum;
    const allTerms = { ...terms, guard: feePayer.guardOf(spendable) };
    const sweeps = parts.flatMap((part) =>
      part.sweeps.map(({ coin, stage }) => ({ address: part.account.address, mint: coin.mint, stage })),
    );
    const hasSweeps = sweeps.length > 0;
    const expectedRent = rentOf(parts.flatMap((part) => part.sweeps));
    const { rent = expectedRent } = simulated;
    const { base64, signature, fee, costs } = await feePayer.sign(
      composer.compose(parts, allTerms, blockhash),
      {
        spendable,
        rent: hasSweeps && rent > expectedRent ? rent : expectedRent,
        sweeps,
        accounts: drafts.map(({ candidate, movedBy }, i) => ({
          moved: movedBy(parts[i]!, simulated),
          payers: candidate.payers,
        })),
      },
    );
    const isStoredForAll = createBarrier(drafts.length);
    return drafts.map((draft, i) => ({
      ...costs[i]!,
      transaction: {
        ...{ base64, signature, lastValidBlockHeight, isShared: drafts.length > 1 },
        sweptMints: hasSweeps ? [...new Set(sweeps.map(({ mint }) => mint))] : undefined,
      },
      fee: i === 0 ? fee : toLamports(0),
      hasSweeps,
      findCulprits(err) {
        const culprits = composer.findCulprits(parts, allTerms, err);
        // A distribution has several steps.
        return [...new Set(culprits.flatMap(({ sweep }) => sweep?.coin.mint ?? []))];
      },
      unwithdrawable: draft.candidate.prospect.fees.unwithdrawable,
      remaining: draft.remaining(parts[i]!),
      isStoredForAll,
    }));
  }

  /** Calls `answer` once for each candidate, as soon as it is known. Never rejects. */
  return async (
    candidates: readonly Candidate[],
    answer: (index: number, result: PlanResult) => void,
  ): Promise<void> => {
    const open = new Map(candidates.map((candidate, i) => [createDraft(candidate), i]));

    function settle(draft: Draft, result: PlanResult): void {
      const i = open.get(draft);
      if (i === undefined) return;
      open.delete(draft);
      if (!(result instanceof Error)) draft.logLeftOut();
      answer(i, result);
    }

    async function plan(drafts: readonly Draft[], attempts = 0): Promise<void> {
      try {
        await tryPlan(drafts, attempts);
      } catch (error) {
        for (const draft of drafts) settle(draft, error as Error);
      }
    }

    async function planEach(groups: readonly (readonly Draft[])[], attempts = 0): Promise<void> {
      await Promise.all(groups.map((group) => plan(group, attempts)));
    }

    async function tryPlan(all: readonly Draft[], attempts: number): Promise<void> {
      const parts: CollectPart[] = [];
      const drafts = all.filter((draft) => {
        const timedOut = isLate(draft) ? new CollectError({ kind: "timed-out" }) : undefined;
        const part = timedOut ? undefined : draft.choosePart();
        if (part) parts.push(part);
        else settle(draft, timedOut ?? draft.failure());
        return part !== undefined;
      });
      if (drafts.length === 0) return;
      let fitting = drafts.length;
      while (fitting > 1 && !composer.fits(parts.slice(0, fitting))) fitting--;
      if (fitting < drafts.length)
        return planEach([drafts.slice(0, fitting), drafts.slice(fitting)], attempts);
      const singles = drafts.map((draft) => [draft]);
      if (drafts.length > 1 && attempts >= MAX_ATTEMPTS) return planEach(singles);

      /** Plans again without some of the drafts, each of which gets its own transaction. */
      async function separate(some: readonly Draft[], reason: string): Promise<void> {
        if (drafts.length === 1) return plan(drafts);
        for (const { address } of some) {
          log.debug({ address }, `a collect gets a transaction of its own: ${reason}`);
          apart.set(address, true);
        }
        const others = drafts.filter((draft) => !some.includes(draft));
        await Promise.all([planEach(some.map((draft) => [draft])), plan(others, attempts + 1)]);
      }

      const simulated = await simulator.simulate(parts).catch((error: unknown) => {
        if (!isOfVersion(error)) throw error;
        versions.refused();
      });
      // As legacy.
      if (!simulated) return plan(drafts, attempts);
      const { err, simulatedTerms } = simulated;
      if (err !== null) {
        assertFeePayerPays(err);
        const steps = composer.findCulprits(parts, simulatedTerms, err);
        const i = drafts.length === 1 ? 0 : parts.findIndex((part) => part === steps[0]?.part);
        // Any of them may be the reason.
        if (i === -1) return planEach(singles);
        drafts[i]!.leaveOutFailed(parts[i]!, simulated, steps);
        return separate([drafts[i]!], "it fails the simulation");
      }

      const terms = await simulator.termsOf(parts, simulated);
      const changed = drafts.filter((draft, i) => draft.leaveOutCostly(parts[i]!, simulated, terms));
      if (changed.length > 0) return separate(changed, "it would move too little");
      if (drafts.length > 1 && terms.price > MAX_PRICE_RATIO * priorityFeeFloorMicrolamports) {
        const prices = await Promise.all(parts.map((part) => simulator.priceOf([part], terms.unitLimit)));
        const lowest = prices.reduce((least, price) => (price < least ? price : least));
        const expensive = drafts.filter((_, i) => prices[i]! > MAX_PRICE_RATIO * lowest);
        if (expensive.length > 0) return separate(expensive, "its price is high");
      }
      const latest = await getBlockhash();
      if (drafts.some(isLate)) return plan(drafts, attempts + 1);
      const results = await sign(drafts, parts, simulated, terms, latest).catch((error: unknown) => {
        if (error instanceof AccountsRefused) return error.reasons as Error[];
        throw error;
      });
      for (const [i, draft] of drafts.entries()) if (results[i]) settle(draft, results[i]);
      await plan(
        drafts.filter((draft) => open.has(draft)),
        attempts + 1,
      );
    }

    await plan([...open.keys()]);
  };
}

/** Returns a function that resolves, after `count` calls, to whether all were called with true. */
function createBarrier(count: number): (isOk: boolean) => Promise<boolean> {
  const all = Promise.withResolvers<boolean>();
  let called = 0;
  let areOk = true;
  return (isOk) => {
    areOk &&= isOk;
    if (++called === count) all.resolve(areOk);
    return all.promise;
  };
}

const isLate = ({ candidate }: Draft): boolean => performance.now() > candidate.endsAt;

/** Throws {@link CollectError} `fee-payer-short` if that is why a simulation failed. */
function assertFeePayerPays(err: TransactionError): void {
  if (!isFeePayerShort(err)) return;
  const detail = `the simulation failed: ${JSON.stringify(err)}`;
  throw new CollectError({ kind: "fee-payer-short", detail });
}
