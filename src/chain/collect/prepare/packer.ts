import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { Logger } from "../../../observability/log.ts";
import { createBatcher } from "../../../upstream/batcher.ts";
import { CollectError } from "../../collect-error.ts";
import { toLamports } from "../../lamports.ts";
import type { TransactionError } from "../../rpc/transaction-error.ts";
import { AccountsRefused, type FeePayer, type SignedTransaction } from "../fee-payer.ts";
import type { CollectPart, Composer, TransactionTerms } from "../message/composer.ts";
import { createSignAlone, type GetBlockhash, type SignedCollect } from "./sign-alone.ts";
import type { Candidate } from "./prospect.ts";
import type { SimulateAlone } from "./simulate-alone.ts";
import { assertFeePayerPays, type Simulator } from "./simulator.ts";

/** What became of a candidate: signed (undefined when too little would move), or it needs a transaction of its own. */
type Verdict = { readonly signed: SignedCollect | undefined } | "alone";
type Verdicts = Map<Candidate, Verdict | Error>;

/** This many accounts without the AMM's part fit into a transaction. */
const MAX_ACCOUNTS = 11;
/** Transactions that are being prepared at once: a call that hangs must not hold up the others. */
const MAX_PREPARING = 32;
/** The longest that an account waits for others while transactions are being prepared. */
const MAX_WAIT_MS = 50;
/** How long accounts gather first while transactions are in flight. */
const GATHER_MS = 100;
/** How many times a shared transaction is tried; then each account goes alone, so that none waits longer. */
const MAX_ATTEMPTS = 3;
/** An account whose price is more than this many times the lowest of the others goes alone. */
const MAX_PRICE_RATIO = 4n;
/** How long an account that disturbed a shared transaction goes alone from the start. */
const APART_MS = 600_000;
const MAX_APART = 10_000;

/**
 * Signs collects. Collects of different accounts that are ready at the same moment share a transaction, as
 * many as fit. A collect that finds no transaction in flight or being prepared does not wait; otherwise
 * collects gather for a moment.
 *
 * A transaction is all or nothing, so an account must not be able to fail the others. It gets a transaction
 * of its own, also for the next ten minutes, if its instruction or balance fails the simulation, if it would
 * move too little, or if its price is far higher than the others'. Accounts with sweeps always do.
 */
export function createPacker(needs: {
  simulator: Simulator;
  simulateAlone: SimulateAlone;
  composer: Composer;
  feePayer: FeePayer;
  getBlockhash: GetBlockhash;
  priceFloor: bigint;
  log: Logger;
}) {
  const { simulator, composer, feePayer, getBlockhash, priceFloor, log } = needs;
  const signAlone = createSignAlone(needs);
  const apart = new LRUCache<string, true>({ max: MAX_APART, ttl: APART_MS });
  let gathering: Promise<void> | undefined;
  const batcher = createBatcher({
    ask,
    // An account has at most one collect in flight.
    idOf: addressOf,
    maxKeys: MAX_ACCOUNTS,
    maxCalls: MAX_PREPARING,
    maxWaitMs: MAX_WAIT_MS,
  });

  /** Resolves at the same moment for all calls within `GATHER_MS`. */
  function gather(): Promise<void> {
    gathering ??= sleep(GATHER_MS).then(() => {
      gathering = undefined;
    });
    return gathering;
  }

  async function ask(
    candidates: readonly Candidate[],
    answer: (index: number, verdict: Verdict | Error) => void,
  ): Promise<void> {
    const inTime = candidates.filter(({ endsAt }) => performance.now() <= endsAt);
    const verdicts = new Map((await Promise.all(toGroups(inTime).map(prepare))).flatMap((some) => [...some]));
    candidates.forEach((candidate, i) => {
      answer(i, verdicts.get(candidate) ?? new CollectError({ kind: "timed-out" }));
    });
  }

  /** Splits candidates into groups that each fit into a transaction. */
  function toGroups(all: readonly Candidate[]): Candidate[][] {
    const groups: Candidate[][] = [];
    for (const candidate of all) {
      const last = groups.at(-1);
      if (last && composer.fits([...last, candidate].map(partOf))) last.push(candidate);
      else groups.push([candidate]);
    }
    return groups;
  }

  async function prepare(group: readonly Candidate[]): Promise<Verdicts> {
    const verdicts: Verdicts = new Map();
    const undecided = () => group.filter((member) => !verdicts.has(member));
    try {
      const [only] = group;
      if (group.length === 1) return verdicts.set(only!, { signed: await signAlone(only!) });
      for (let attempts = 0; undecided().length > 1 && attempts < MAX_ATTEMPTS; attempts++)
        await signTogether(undecided(), verdicts);
      for (const member of undecided()) verdicts.set(member, "alone");
    } catch (error) {
      for (const member of undecided()) verdicts.set(member, error as Error);
    }
    return verdicts;
  }

  /** Signs a transaction for the members, or gives a verdict to those that prevent it. */
  async function signTogether(members: readonly Candidate[], verdicts: Verdicts): Promise<void> {
    const separate = (some: readonly Candidate[], reason: string) => {
      for (const member of some) {
        const address = addressOf(member);
        log.debug({ address }, `a collect gets a transaction of its own: ${reason}`);
        apart.set(address, true);
        verdicts.set(member, "alone");
      }
      return some.length > 0;
    };
    const parts = members.map(partOf);
    const simulated = await simulator.simulate(parts);
    if (simulated.err !== null) {
      const failed = findFailed(members, simulated.err, simulated.simulatedTerms);
      if (failed) separate([failed], "it fails the simulation");
      else for (const member of members) verdicts.set(member, "alone");
      return;
    }
    const moved = members.map(({ prospect: { part, fees } }, i) =>
      simulator.movedIfEnough(part, fees.vaults, simulated, i),
    );
    const empty = members.filter((_, i) => moved[i] === undefined);
    if (separate(empty, "it would move too little")) return;

    const terms = await simulator.termsOf(parts, simulated);
    const isHigh = terms.price > MAX_PRICE_RATIO * priceFloor;
    if (isHigh && separate(await findExpensive(members, terms.unitLimit), "its price is high")) return;

    const { blockhash, lastValidBlockHeight } = await getBlockhash();
    const late = members.filter(({ endsAt }) => performance.now() > endsAt);
    for (const member of late) verdicts.set(member, new CollectError({ kind: "timed-out" }));
    if (late.length > 0) return;

    const { rentMinimum } = members[0]!.prospect.fees.vaults;
    try {
      const transaction = await feePayer.sign(composer.compose(parts, { ...terms, guard: 1n }, blockhash), {
        spendable: simulator.spendableAfter(simulated, terms, rentMinimum),
        rent: toLamports(0),
        sweeps: [],
        accounts: members.map(({ payers }, i) => ({ moved: moved[i]!, payers })),
      });
      toSigned(members, transaction, lastValidBlockHeight).forEach((signed, i) => {
        verdicts.set(members[i]!, { signed });
      });
    } catch (error) {
      if (!(error instanceof AccountsRefused)) throw error;
      error.reasons.forEach((reason, i) => {
        if (reason !== undefined) verdicts.set(members[i]!, reason as Error);
      });
    }
  }

  /** The member that failed a simulation; undefined if it is unknown. Throws when the fee payer is short. */
  function findFailed(
    members: readonly Candidate[],
    err: TransactionError,
    terms: TransactionTerms,
  ): Candidate | undefined {
    assertFeePayerPays(err);
    const [culprit] = composer.findCulprits(members.map(partOf), terms, err);
    return members.find((member) => partOf(member) === culprit?.part);
  }

  /** The members whose price is far above the lowest. */
  async function findExpensive(members: readonly Candidate[], unitLimit: number): Promise<Candidate[]> {
    const prices = await Promise.all(members.map((member) => simulator.priceOf([partOf(member)], unitLimit)));
    const lowest = prices.reduce((least, price) => (price < least ? price : least));
    return members.filter((_, i) => prices[i]! > MAX_PRICE_RATIO * lowest);
  }

  return {
    /**
     * Simulates and signs the collect of an account, alone or together with others; undefined when it would move too
     * little. Throws {@link CollectError}, {@link RpcError}, or an error that marks a bug.
     */
    async sign(
      candidate: Candidate,
      { isAlone = false }: { isAlone?: boolean } = {},
    ): Promise<SignedCollect | undefined> {
      const address = addressOf(candidate);
      const { part } = candidate.prospect;
      if (isAlone || part.sweeps.length > 0 || apart.has(address)) return signAlone(candidate);
      if (feePayer.hasInFlight()) await gather();
      const [verdict] = await batcher.load([candidate]);
      if (verdict === "alone") return signAlone(candidate);
      if (!verdict || verdict instanceof Error) throw verdict ?? new Error("a collect has no verdict");
      return verdict.signed;
    },
  };
}

/** The transaction for each of its accounts. */
function toSigned(
  members: readonly Candidate[],
  { base64, signature, fee, costs }: SignedTransaction,
  lastValidBlockHeight: number,
): SignedCollect[] {
  const isStoredForAll = createBarrier(members.length);
  return members.map(({ prospect }, i) => ({
    ...costs[i]!,
    transaction: { base64, signature, lastValidBlockHeight, isShared: true },
    fee: i === 0 ? fee : toLamports(0),
    hasSweeps: false,
    findCulprits: () => [],
    unwithdrawable: prospect.fees.unwithdrawable,
    remaining: [],
    isStoredForAll,
  }));
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

const addressOf = ({ prospect }: Candidate): string => prospect.wallet.account.address;
const partOf = ({ prospect }: Candidate): CollectPart => prospect.part;
