import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { memoize } from "../../../store/memoize.ts";
import { createBatcher } from "../../batcher.ts";
import { CollectError } from "../../collect-error.ts";
import { toLamports, type Lamports } from "../../lamports.ts";
import { choosePrice, PRIORITY_FEE_FLOOR_MICROLAMPORTS, priorityFee } from "../../priority-fee.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import type { Floors } from "../../slots/stale-balances.ts";
import { isFeePayerShort, isTooLarge, type TransactionError } from "../../rpc/transaction-error.ts";
import { rentOf, type WaitingFees } from "../../choose-sweeps.ts";
import { storeUnderAll, type StoredTransaction } from "../claims.ts";
import type { AccountCost, FeePayer } from "../fee-payer.ts";
import { unitLimitOf, writableOf, type CollectPart, type Composer } from "../message/composer.ts";
import type { MessageBudget } from "../message/message.ts";
import { POLL_MS } from "../send-and-confirm.ts";
import type { Draft } from "./draft.ts";
import { simulate, SIMULATED_TERMS, type Simulated } from "./simulator.ts";
import { createUsedUnits } from "./used-units.ts";
import { monotonicNow } from "../../../time/monotonic.ts";

/** A transaction that this replica signed, with the data of one of the transaction's accounts. */
export interface SignedCollect extends AccountCost {
  readonly transaction: StoredTransaction;
  /**
   * The most that the transaction can cost besides rent. 0 for all accounts but one, so that the
   * fee counts once.
   */
  readonly fee: Lamports;
  /**
   * Returns the mints that made the transaction fail, each once. From now on, accounts that did so
   * are planned alone.
   */
  findCulprits(err: TransactionError): readonly string[];
  /** Records the compute units that the landed transaction used. */
  usedUnits(units: number): void;
  /** How many of the address's lamports the owner cannot withdraw. */
  readonly unwithdrawable: Lamports;
  readonly remaining: readonly WaitingFees[];
}

/**
 * Undefined: too little would move. `lost`: another replica has taken a claim of the draft, so
 * nothing is sent.
 */
type Planned = SignedCollect | "lost" | undefined;
type PlanResult = Planned | Error;

/** This many accounts fit into a transaction if none of them needs the AMM's transfer. */
const MAX_ACCOUNTS = 30;
/** How many transactions are prepared at once: a call that hangs must not hold up the others. */
const MAX_PREPARING = 32;
/** The longest that an account waits for others while transactions are being prepared. */
const MAX_WAIT_MS = 50;
/**
 * How long a collect waits for others to plan together with it, while transactions are in flight.
 */
const GATHER_MS = 100;
/** How long an account gets its own transactions after it was separated from others. */
const APART_MS = 600_000;
const MAX_APART = 10_000;
/**
 * How long signed transactions share a blockhash, as a fraction of the time between two polls. Less
 * than 1: once a poll has confirmed an account's transaction, the account's next one must get a
 * newer blockhash, and so other bytes.
 */
const BLOCKHASH_MAX_AGE = 3 / 4;
/** How often several accounts are tried together. After that, each gets its own transaction. */
const MAX_ATTEMPTS = 3;
/**
 * An account whose price is more than this many times the lowest price gets its own transaction.
 */
const MAX_PRICE_RATIO = 4n;

export type Planner = ReturnType<typeof createPlanner>;

/**
 * Plans and signs the transactions of collects: simulates as many drafts together as fit into one
 * transaction, leaves out what fails, chooses the price, signs, and stores the transaction in the
 * claims.
 *
 * Collects of different accounts that are ready at the same moment are planned together. While
 * transactions are in flight or being prepared, collects gather for a moment. A transaction is all
 * or nothing, so no account may fail the others. A collect with sweeps always gets its own
 * transaction. An account that fails the simulation, moves too little or needs a far higher price
 * gets its own transactions for ten minutes.
 */
export function createPlanner(needs: {
  rpc: Rpc;
  floors: Pick<Floors, "landedSlotOf">;
  composer: Composer;
  feePayer: FeePayer;
  maxPriorityFeeLamports: Lamports;
  /** The time between two polls for a landed transaction. */
  pollMs?: number | undefined;
}) {
  const { rpc, floors, composer, feePayer, maxPriorityFeeLamports, pollMs = POLL_MS } = needs;
  const getBlockhash = memoize(() => rpc.getLatestBlockhash(), BLOCKHASH_MAX_AGE * pollMs);
  const usedUnits = createUsedUnits();
  /** The accounts that get their own transactions, by address. */
  const apart = new LRUCache<string, true>({ max: MAX_APART, ttl: APART_MS });
  /** Resolves at the same moment for all calls within `GATHER_MS`. */
  const gather = memoize(() => sleep(GATHER_MS), GATHER_MS);
  const batcher = createBatcher<Draft, Planned>({
    ask: planAll,
    // An account has at most one collect in flight.
    idOf: ({ address }) => address,
    maxKeys: MAX_ACCOUNTS,
    maxCalls: MAX_PREPARING,
    maxWaitMs: MAX_WAIT_MS,
  });

  /**
   * Returns the price per compute unit, in micro-lamports, for a transaction with these parts.
   * Never rejects.
   */
  const priceOf = (parts: readonly CollectPart[], unitLimit: number): Promise<bigint> =>
    choosePrice(rpc, parts.flatMap(writableOf), unitLimit, maxPriorityFeeLamports);

  async function termsOf(
    parts: readonly CollectPart[],
    { unitsConsumed }: Simulated,
  ): Promise<MessageBudget> {
    const unitLimit = unitLimitOf(parts, unitsConsumed, usedUnits.before(parts));
    return { unitLimit, price: await priceOf(parts, unitLimit) };
  }

  /**
   * Signs one transaction for all drafts, and stores it in their claims. Throws the errors of
   * `feePayer.sign`.
   */
  async function sign(
    drafts: readonly Draft[],
    parts: readonly CollectPart[],
    simulated: Simulated,
    terms: MessageBudget,
    { blockhash, lastValidBlockHeight }: Awaited<ReturnType<Rpc["getLatestBlockhash"]>>,
  ): Promise<Planned[]> {
    // The simulation charged no priority fee: the fee depends on the compute units that the
    // simulation measured.
    const toSpend = (left: Lamports) =>
      left - priorityFee(terms.price, terms.unitLimit) - drafts[0]!.rentMinimum;
    const certainlySpendable = toSpend(simulated.certainlyLeft);
    const allTerms = { ...terms, guard: feePayer.guardOf(certainlySpendable) };
    const sweeps = parts.flatMap((part) =>
      part.sweeps.map(({ coin, stage }) => ({
        address: part.account.address,
        mint: coin.mint,
        stage,
      })),
    );
    const hasSweeps = sweeps.length > 0;
    const expectedRent = rentOf(parts.flatMap((part) => part.sweeps));
    const { rent, left } = simulated;
    const { base64, signature, fee, costs } = await feePayer.sign(
      composer.compose(parts, allTerms, blockhash),
      {
        spendable: toSpend(left),
        certainlySpendable,
        rent: hasSweeps && rent > expectedRent ? rent : expectedRent,
        sweeps,
        accounts: drafts.map(({ collect, movedBy }, i) => ({
          moved: movedBy(parts[i]!, simulated),
          payers: collect.payers,
        })),
      },
    );
    const transaction: StoredTransaction = {
      ...{ base64, signature, lastValidBlockHeight, isShared: drafts.length > 1 },
      sweptMints: hasSweeps ? [...new Set(sweeps.map(({ mint }) => mint))] : undefined,
    };
    for (const { collect } of drafts) collect.onSigned();
    const held = drafts.map((draft, i) => draft.claimsOf(parts[i]!));
    const mayBeSent = await storeUnderAll(held, transaction);
    const firstSent = mayBeSent.indexOf(true);
    return drafts.map((draft, i) => {
      if (!mayBeSent[i]) {
        costs[i]!.close({ refund: firstSent < 0 });
        return "lost";
      }
      return {
        ...costs[i]!,
        transaction,
        fee: i === firstSent ? fee : toLamports(0),
        findCulprits(err) {
          const culprits = composer.findCulprits(parts, allTerms, err);
          if (drafts.length > 1)
            for (const { part } of culprits) apart.set(part.account.address, true);
          // A distribution has several steps, so its mint can repeat.
          return [...new Set(culprits.flatMap(({ sweep }) => sweep?.coin.mint ?? []))];
        },
        usedUnits: (units) => {
          usedUnits.landed(parts, units, terms.unitLimit);
        },
        unwithdrawable: draft.unwithdrawable,
        remaining: draft.remaining(parts[i]!),
      };
    });
  }

  /** Calls `answer` once for each draft, as soon as the draft's result is known. Never rejects. */
  async function planAll(
    all: readonly Draft[],
    answer: (index: number, result: PlanResult) => void,
  ): Promise<void> {
    const open = new Map(all.map((draft, i) => [draft, i]));

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

    async function tryPlan(wanted: readonly Draft[], attempts: number): Promise<void> {
      const parts: CollectPart[] = [];
      const drafts = wanted.filter((draft) => {
        const timedOut = isLate(draft) ? new CollectError({ kind: "timed-out" }) : undefined;
        const part = timedOut ? undefined : draft.choosePart();
        if (part) parts.push(part);
        else settle(draft, timedOut ?? draft.failure());
        return part !== undefined;
      });
      if (drafts.length === 0) return;
      let fitting = drafts.length;
      while (fitting > 1 && !composer.fits(parts.slice(0, fitting))) fitting--;
      const splitAt = (count: number) =>
        planEach([drafts.slice(0, count), drafts.slice(count)], attempts);
      if (fitting < drafts.length) return splitAt(fitting);
      const singles = drafts.map((draft) => [draft]);
      if (drafts.length > 1 && attempts >= MAX_ATTEMPTS) return planEach(singles);

      /**
       * Plans each of `some` drafts in its own transaction, and the other drafts together again.
       */
      async function separate(some: readonly Draft[]): Promise<void> {
        if (drafts.length === 1) return plan(drafts);
        for (const { address } of some) apart.set(address, true);
        const others = drafts.filter((draft) => !some.includes(draft));
        await Promise.all([planEach(some.map((draft) => [draft])), plan(others, attempts + 1)]);
      }

      const simulated = await simulate(
        {
          ...{ rpc, floors, composer, feePayer: feePayer.address },
          leastLeft: feePayer.leastLeft() + drafts[0]!.rentMinimum,
          rentMinimum: drafts[0]!.rentMinimum,
        },
        parts,
      );
      if ("err" in simulated) {
        const { err } = simulated;
        if (isFeePayerShort(err)) {
          const detail = `the simulation failed: ${JSON.stringify(err)}`;
          throw new CollectError({ kind: "fee-payer-short", detail });
        }
        const steps = composer.findCulprits(parts, SIMULATED_TERMS, err);
        const i = drafts.length === 1 ? 0 : parts.findIndex((part) => part === steps[0]?.part);
        // The failed account is unknown. If the transaction is only too large, halves of it may
        // fit.
        if (i === -1)
          return isTooLarge(err) ? splitAt(Math.ceil(drafts.length / 2)) : planEach(singles);
        drafts[i]!.leaveOutFailed(parts[i]!, simulated, steps);
        return separate([drafts[i]!]);
      }

      const terms = await termsOf(parts, simulated);
      const changed = drafts.filter((draft, i) =>
        draft.leaveOutCostly(parts[i]!, simulated, terms),
      );
      if (changed.length > 0) return separate(changed);
      if (drafts.length > 1 && terms.price > MAX_PRICE_RATIO * PRIORITY_FEE_FLOOR_MICROLAMPORTS) {
        const prices = await Promise.all(parts.map((part) => priceOf([part], terms.unitLimit)));
        const lowest = prices.reduce((least, price) => (price < least ? price : least));
        const expensive = drafts.filter((_, i) => prices[i]! > MAX_PRICE_RATIO * lowest);
        if (expensive.length > 0) return separate(expensive);
      }
      const latest = await getBlockhash();
      if (drafts.some(isLate)) return plan(drafts, attempts + 1);
      const results = await sign(drafts, parts, simulated, terms, latest).catch(
        (error: unknown) => {
          // `errors` has an entry for each account: undefined if the budget allows the account.
          if (error instanceof AggregateError) return error.errors as Error[];
          throw error;
        },
      );
      for (const [i, draft] of drafts.entries()) if (results[i]) settle(draft, results[i]);
      await plan(
        drafts.filter((draft) => open.has(draft)),
        attempts + 1,
      );
    }

    await plan([...open.keys()]);
  }

  /**
   * Simulates, signs and stores the transaction of an account's collect, alone or together with
   * other accounts. Throws {@link CollectError}, {@link RpcError}, or an error that marks a bug.
   */
  return async (draft: Draft, { isAlone }: { isAlone: boolean }): Promise<Planned> => {
    let result: PlanResult;
    if (isAlone || draft.wanted.sweeps.length > 0 || apart.has(draft.address)) {
      await planAll([draft], (_, each) => {
        result = each;
      });
    } else {
      if (feePayer.hasInFlight()) await gather();
      [result] = await batcher.load([draft]);
    }
    if (result instanceof Error) throw result;
    return result;
  };
}

const isLate = ({ collect }: Draft): boolean => monotonicNow() > collect.endsAt;
