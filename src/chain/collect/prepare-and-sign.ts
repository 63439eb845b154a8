import type { Logger } from "../../observability/log.ts";
import { toError } from "../../observability/thrown.ts";
import { createLruCache } from "../../store/lru-cache.ts";
import { memoize } from "../../store/memoize.ts";
import { equalParts, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";
import type { UncollectedFees } from "../balances/balances.ts";
import {
  distributionsOf,
  rentOf,
  withoutAmm,
  withoutPools,
  type Sweep,
} from "../launchpad/choose-sweeps.ts";
import { CollectError } from "../errors/collect-error.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import {
  BASE_FEE_LAMPORTS,
  PRIORITY_FEE_FLOOR_MICROLAMPORTS,
  priorityFee,
  readPrice,
  toAffordablePrice,
} from "../units/priority-fee.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import type { Composer } from "../units/composer.ts";
import { blamedIn, writableOf, type CollectPart, type PlannedPart } from "../units/part.ts";
import type { Failures } from "../balances/failures.ts";
import type { MessageBudget } from "../units/message.ts";
import type { Simulated, Simulations } from "../units/simulations.ts";
import { MAX_UNIT_LIMIT, unitLimitOf } from "../units/instruction-costs.ts";
import { failureKey, type Unit } from "../units/units.ts";
import type { Claim, StoredTransaction } from "./claims.ts";
import type { Payers } from "./fee-budget.ts";
import type { AccountCost, FeePayer } from "./fee-payer.ts";
import { POLL_MS } from "./send-and-confirm.ts";

/** A unit that is ready for a transaction: its claim is held, and its fees are read. */
export interface Member {
  readonly unit: Unit;
  readonly claim: Claim;
  readonly fees: UncollectedFees;
  readonly payers: Payers;
  /** Whether so little is not worth a transaction. A caller who joins can change this. */
  readonly isTooLittle: (moved: Lamports) => boolean;
  /** Nothing is signed after this time. */
  readonly endsAt: MonotonicTime;
}

/** A unit's part of a signed transaction, which is stored in the unit's claim. */
export interface Signed extends AccountCost {
  readonly transaction: StoredTransaction;
  readonly part: CollectPart;
  readonly signedAt: MonotonicTime;
  /**
   * The most that the transaction can cost besides rent. 0 for all members but one, so that the fee
   * counts once.
   */
  readonly fee: Lamports;
}

export type Prepared =
  | { readonly kind: "signed"; readonly signed: Signed }
  /** Nothing is sent: too little would move, or with `error`, all simulations failed. */
  | {
      readonly kind: "nothing";
      readonly error?: CollectError | undefined;
      /** The coins whose simulation failed. */
      readonly failedMints: readonly string[];
    }
  /** Nothing is sent: the claim is lost. */
  | { readonly kind: "again" };

/** After this many, nothing is signed. The last one has no coins. */
const MAX_SIMULATIONS = 3;
/** This many accounts fit into a transaction if none of them needs the AMM's transfer. */
const MAX_MEMBERS = 21;
/** How long an account waits for others while transactions are in flight. */
const GATHER_MS = 100;
/** How much longer, while others may soon be ready. */
const EXPECT_MS = 200;
/** Of accounts whose common transaction failed. */
const MAX_ALONE = 10_000;
/** How long signed transactions share a blockhash, as a multiple of the time between two polls. */
const BLOCKHASH_MAX_AGE = 3;
/**
 * An account whose price is more than this many times the lowest price gets its own transaction.
 */
const MAX_PRICE_RATIO = 4n;
/**
 * A unit's transactions differ in their compute-unit limit, by how many the unit has had: equal
 * bytes would be one transaction. Costs at most a lamport at the lowest price.
 */
const MAX_COUNTED_UNITS = 1_000;

type Settle = (member: Member, result: Prepared | Error) => void;

export type Transactions = ReturnType<typeof createTransactions>;

/**
 * Prepares the transactions of units: simulates them, leaves out what fails, chooses the price,
 * signs, and stores the transactions in the claims.
 *
 * Accounts without coins that are ready at the same moment share a transaction. While others may
 * soon be ready, or are in flight, they gather for a moment; a lone one never waits. A transaction
 * is all or nothing, so no account may fail the others: one that fails the simulation, moves too
 * little or needs a far higher price gets its own transaction. So does each account of a common
 * transaction that failed on the chain, once.
 */
export function createTransactions(needs: {
  rpc: Rpc;
  composer: Composer;
  simulations: Simulations;
  feePayer: FeePayer;
  failures: Pick<Failures, "simulationFailed">;
  maxPriorityFeeLamports: Lamports;
  /** Runs a preparation, whose calls to the chain belong to the blocks that pay. */
  ownCalls: ChainCallPlan["own"];
  /** The time between two polls for a landed transaction. */
  pollMs?: number | undefined;
  log: Logger;
}) {
  const { rpc, composer, feePayer, failures, log } = needs;
  const { maxPriorityFeeLamports, ownCalls, pollMs = POLL_MS } = needs;
  const { simulate, movedBy, recordMinimum, findTooExpensive, recordBlocked } = needs.simulations;
  const getBlockhash = memoize(() => rpc.getLatestBlockhash(), BLOCKHASH_MAX_AGE * pollMs);
  /** The addresses of accounts whose next transaction is their own. */
  const alone = createLruCache<string, true>(MAX_ALONE);
  /** How many accounts may soon be ready to share a transaction. */
  let coming = 0;
  /** The accounts that are ready, and what to do with their results. */
  let ready = new Map<Member, PromiseWithResolvers<Prepared>>();

  /** Prepares the transactions of all accounts that are ready. */
  function depart(): void {
    const departing = ready;
    ready = new Map();
    void prepare([...departing.keys()], (member, result) => {
      const waiter = departing.get(member);
      if (result instanceof Error) waiter?.reject(result);
      else waiter?.resolve(result);
    });
  }

  /** Departs if no other account may join. */
  function departIfAll(): void {
    if (ready.size >= MAX_MEMBERS || (coming === 0 && !feePayer.hasInFlight())) depart();
  }

  /** Waits with other accounts for a transaction that they share. */
  function gather(member: Member): Promise<Prepared> {
    const result = Promise.withResolvers<Prepared>();
    ready.set(member, result);
    const gatheredMembers = ready;
    const departLate = () => {
      if (ready === gatheredMembers) depart();
    };
    setTimeout(() => {
      if (coming > 0) setTimeout(departLate, EXPECT_MS);
      else departLate();
    }, GATHER_MS);
    departIfAll();
    return result.promise;
  }

  /** Simulates the parts on a state at least as new as the one that was read. */
  const simulateParts = (parts: readonly PlannedPart[], members: readonly Member[]) =>
    simulate(parts, {
      minSlot: Math.max(...members.map(({ fees }) => fees.slot)),
      rent: members[0]!.fees.vaults.rent,
    });

  const readPriceOf = (parts: readonly CollectPart[]) => readPrice(rpc, parts.flatMap(writableOf));
  const toAffordable = (price: bigint, unitLimit: number) =>
    toAffordablePrice(price, unitLimit, maxPriorityFeeLamports);

  /** Reads what a transaction needs besides its simulation. */
  function readTerms(parts: readonly CollectPart[]) {
    const terms = Promise.all([readPriceOf(parts), getBlockhash()]);
    // The simulation may fail before anything waits for these.
    terms.catch(() => undefined);
    return terms;
  }

  async function getTerms(
    members: readonly Member[],
    parts: readonly CollectPart[],
    { unitsConsumed }: Simulated,
    terms = readTerms(parts),
  ) {
    const limit = Math.min(unitLimitOf(parts, unitsConsumed), MAX_UNIT_LIMIT - MAX_COUNTED_UNITS);
    const count = Math.max(...members.map(({ claim }) => claim.count));
    const unitLimit = limit + (count % MAX_COUNTED_UNITS);
    const [price, latest] = await terms;
    members.forEach(assertInTime);
    return { unitLimit, price: toAffordable(price, unitLimit), latest };
  }

  /**
   * Prepares a unit's own transaction, with at most {@link MAX_SIMULATIONS}, the last one without
   * coins. After a failed one, leaves out the coins or the AMM's transfer that it blames; if it
   * blames none, all coins. `first`: the number of the first simulation.
   */
  async function prepareAlone(member: Member, first = 1): Promise<Prepared> {
    const { unit } = member;
    const { account } = unit;
    const { rentMinimum } = unit.vaults;
    const failedMints: string[] = [];
    let { sweeps, vaults } = unit;
    let error: CollectError | undefined;
    let earlyTerms: ReturnType<typeof readTerms> | undefined;
    for (let count = first; count <= MAX_SIMULATIONS; count++) {
      if (count === MAX_SIMULATIONS && first < count && unit.kind === "own") sweeps = [];
      const part = composer.choosePart(account, sweeps, vaults);
      if (!part) break;
      assertInTime(member);
      // Other coins have other prices, and what a simulation leaves out must not decide the price.
      if (part.sweeps.length === 0) earlyTerms ??= readTerms([part]);
      const simulation = await simulateParts([part], [member]);
      if ("err" in simulation) {
        ({ error } = simulation);
        const blame = blamedIn(part, simulation.blamed);
        const isAmm = blame.amm || (part.withAmm && part.sweeps.length === 0);
        const failedSweeps = blame.sweeps.length > 0 || isAmm ? blame.sweeps : part.sweeps;
        recordBlocked(failedSweeps, simulation);
        for (const sweep of failedSweeps) {
          failedMints.push(sweep.coin.mint);
          failures.simulationFailed(failureKey(sweep), error);
        }
        if (isAmm) {
          failures.simulationFailed(account.ammVault, error);
          [vaults, sweeps] = [withoutAmm(vaults), withoutPools(sweeps)];
        }
        if (!isAmm && part.sweeps.length === 0) {
          if (unit.sweeps.length === 0) failures.simulationFailed(unit.key, error);
          break;
        }
        sweeps = without(sweeps, failedSweeps);
        continue;
      }
      const costly = findTooExpensive(part, simulation.rent);
      if (costly.length > 0) {
        sweeps = without(sweeps, costly);
        continue;
      }
      if (simulation.leftInAmm.get(account.ammVault)) {
        [vaults, sweeps] = [withoutAmm(vaults), withoutPools(sweeps)];
        continue;
      }
      const movedAmount = movedBy(part, rentMinimum, simulation);
      for (const distribution of distributionsOf(part.sweeps))
        await recordMinimum(distribution, simulation).catch(() => undefined);
      if (member.isTooLittle(movedAmount)) return { kind: "nothing", failedMints };
      const terms = await getTerms([member], [part], simulation, earlyTerms);
      const cost = BASE_FEE_LAMPORTS + priorityFee(terms.price, terms.unitLimit);
      if (unit.kind === "distribution" && movedAmount < cost + rentOf(part.sweeps))
        return { kind: "nothing", failedMints };
      logLeftOut(unit, part, error);
      const [result] = await sign(
        [{ member, part, moved: movedAmount }],
        simulation,
        terms,
        rentMinimum,
      );
      return result!;
    }
    logLeftOut(unit, undefined, error);
    return { kind: "nothing", error, failedMints };
  }

  /**
   * Prepares a transaction for several accounts without coins, or for one unit alone. Calls
   * `settle` for each member as soon as its result is known. Never rejects. `attempt`: which one
   * for the members that are still together.
   */
  async function prepare(members: readonly Member[], settle: Settle, attempt = 1): Promise<void> {
    const parts = equalParts(members.flatMap(({ payers }) => [...payers.keys()]));
    try {
      await ownCalls({ use: "collects", parts }, () => tryPrepare(members, settle, attempt));
    } catch (error) {
      for (const member of members) settle(member, toError(error));
    }
  }

  async function prepareEach(
    some: readonly (readonly Member[])[],
    settle: Settle,
    attempt?: number,
  ): Promise<void> {
    await Promise.all(some.map((members) => prepare(members, settle, attempt)));
  }

  async function tryPrepare(all: readonly Member[], settle: Settle, attempt: number) {
    const late = all.filter(isLate);
    for (const member of late) settle(member, new CollectError({ kind: "timed-out" }));
    const members = all.filter((member) => !late.includes(member));
    const [first, ...others] = members;
    if (!first) return;
    if (others.length === 0) {
      settle(first, await prepareAlone(first, Math.min(attempt, MAX_SIMULATIONS)));
      return;
    }
    if (attempt > MAX_SIMULATIONS) {
      await prepareEach(
        members.map((member) => [member]),
        settle,
        MAX_SIMULATIONS,
      );
      return;
    }
    const plans = members.map((member) => ({
      member,
      part: composer.choosePart(member.unit.account, [], member.unit.vaults)!,
    }));
    const parts = plans.map(({ part }) => part);
    let fitting = members.length;
    // Count the instructions before the simulation.
    while (fitting > 1 && !composer.fits(parts.slice(0, fitting))) fitting--;
    if (fitting < members.length) {
      await prepareEach([members.slice(0, fitting), members.slice(fitting)], settle, attempt);
      return;
    }

    /** Prepares each of `some` members alone, and the other members together again. */
    async function separate(some: readonly { readonly member: Member }[]): Promise<void> {
      const lone = some.map(({ member }) => member);
      const rest = members.filter((member) => !lone.includes(member));
      await prepareEach([...lone.map((member) => [member]), rest], settle, attempt + 1);
    }

    const { rentMinimum } = first.fees.vaults;
    const simulation = await simulateParts(parts, members);
    if ("err" in simulation) {
      const culprit = plans.find(({ part }) => blamedIn(part, simulation.blamed).part);
      return separate(culprit ? [culprit] : plans);
    }
    const entries = plans.map(({ member, part }) => ({
      member,
      part,
      moved: movedBy(part, rentMinimum, simulation),
    }));
    const small = entries.filter(
      ({ member, moved: amount }) =>
        member.isTooLittle(amount) || simulation.leftInAmm.get(member.unit.account.ammVault),
    );
    if (small.length > 0) return separate(small);
    const terms = await getTerms(members, parts, simulation);
    if (terms.price > MAX_PRICE_RATIO * PRIORITY_FEE_FLOOR_MICROLAMPORTS) {
      const offers = await Promise.all(
        plans.map(async ({ member, part }) => ({
          member,
          price: toAffordable(await readPriceOf([part]), terms.unitLimit),
        })),
      );
      const lowest = offers.reduce((least, each) => (each.price < least.price ? each : least));
      const expensive = offers.filter(({ price }) => price > MAX_PRICE_RATIO * lowest.price);
      if (expensive.length > 0) return separate(expensive);
    }
    const results = await sign(entries, simulation, terms, rentMinimum).catch((error: unknown) => {
      // `errors` has an entry for each account: undefined if the budget allows the account.
      if (error instanceof AggregateError) return error.errors as (Error | undefined)[];
      throw error;
    });
    const rest = members.filter((_, i) => !results[i]);
    for (const [i, member] of members.entries()) if (results[i]) settle(member, results[i]);
    await prepare(rest, settle, attempt + 1);
  }

  /**
   * Signs one transaction for all members, and stores it in their claims. It is sent if one claim
   * is not lost. All members then wait for it, also those whose claims are lost: it moves their
   * fees too, and the new holder does not know it. Throws the errors of `feePayer.sign`.
   */
  async function sign(
    entries: readonly { member: Member; part: CollectPart; moved: Lamports }[],
    simulation: Simulated,
    { latest, ...budget }: MessageBudget & { latest: Latest },
    rentMinimum: Lamports,
  ): Promise<Prepared[]> {
    const parts = entries.map(({ part }) => part);
    // The simulation charged no priority fee: the fee depends on the compute units that the
    // simulation measured.
    const toSpend = (leftLamports: Lamports) =>
      leftLamports - priorityFee(budget.price, budget.unitLimit) - rentMinimum;
    const spendable = toSpend(simulation.left);
    const terms = { ...budget, guard: feePayer.guardOf(spendable) };
    const sweeps = parts.flatMap((part) =>
      part.sweeps.map(({ coin, stage }) => ({
        address: part.account.address,
        mint: coin.mint,
        stage,
      })),
    );
    const expectedRent = rentOf(parts.flatMap((part) => part.sweeps));
    const isDearer = sweeps.length > 0 && simulation.rent > expectedRent;
    const { base64, signature, fee, costs } = await feePayer.sign(
      composer.compose(parts, terms, latest.blockhash),
      {
        spendable,
        rent: isDearer ? simulation.rent : expectedRent,
        sweeps,
        accounts: entries.map(({ member, moved }) => ({ moved, payers: member.payers })),
      },
    );
    const signedAt = monotonicNow();
    const transaction: StoredTransaction = {
      ...{ base64, signature, lastValidBlockHeight: latest.lastValidBlockHeight },
      isShared: entries.length > 1,
      sweptMints: sweeps.length > 0 ? [...new Set(sweeps.map(({ mint }) => mint))] : undefined,
    };
    const areStored = await Promise.all(
      entries.map(({ member }) => member.claim.store(transaction)),
    );
    const firstStored = areStored.indexOf(true);
    return entries.map(({ part }, i): Prepared => {
      const cost = costs[i]!;
      if (firstStored < 0) {
        cost.close({ refund: true });
        return { kind: "again" };
      }
      const signedPart = {
        ...{ ...cost, transaction, part, signedAt },
        fee: i === firstStored ? fee : toLamports(0),
      };
      return { kind: "signed", signed: signedPart };
    });
  }

  function logLeftOut(unit: Unit, part: CollectPart | undefined, err: Error | undefined): void {
    if (!err) return;
    const collectedMints = part?.sweeps.map(({ coin }) => coin.mint);
    const mints = new Set(unit.sweeps.map(({ coin }) => coin.mint));
    for (const mint of collectedMints ?? []) mints.delete(mint);
    log.warn(
      { address: unit.account.address, mints: [...mints], err },
      "a collect leaves out coins or the AMM's fees, because they fail its simulation or cost too much: if every collect does, the launch platform has changed, so install a new version",
    );
  }

  return {
    /**
     * Simulates, signs and stores the transaction of a unit, alone or together with other accounts.
     * Throws {@link CollectError}, {@link RpcError}, or an error that marks a bug.
     */
    async prepare(member: Member): Promise<Prepared> {
      const { unit } = member;
      const isAlone = alone.delete(unit.key) || unit.sweeps.length > 0;
      return isAlone ? prepareAlone(member) : gather(member);
    },

    /** Runs a step after which an account without coins may be ready to share a transaction. */
    expecting<T>(hasCoins: boolean, step: (arrive: () => void) => Promise<T>): Promise<T> {
      if (hasCoins) return step(() => undefined);
      const one = { isComing: true };
      const arrive = () => {
        if (one.isComing) coming--;
        one.isComing = false;
        setImmediate(departIfAll);
      };
      coming++;
      return step(arrive).finally(arrive);
    },

    /** Gives an account's next transaction to it alone, because a common one failed. */
    setAlone: (address: string): void => void alone.set(address, true),
  };
}

type Latest = Awaited<ReturnType<Rpc["getLatestBlockhash"]>>;

function without(sweeps: readonly Sweep[], some: readonly Sweep[]): Sweep[] {
  return sweeps.filter(
    ({ coin, stage }) => !some.some((each) => each.coin.mint === coin.mint && each.stage === stage),
  );
}

const isLate = ({ endsAt }: Member): boolean => monotonicNow() > endsAt;

function assertInTime(member: Member): void {
  if (isLate(member)) throw new CollectError({ kind: "timed-out" });
}
