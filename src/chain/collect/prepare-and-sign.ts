import type { Logger } from "../../observability/log.ts";
import { toError } from "../../observability/thrown.ts";
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
import type { AccountCost, FeePayer } from "./fee-payer.ts";
import { POLL_MS } from "./send-and-confirm.ts";
import { isWorthwhile, type Turn } from "./turns.ts";

/** A unit that is ready for a transaction: its claim is held, and its fees are read. */
export interface ReadyUnit {
  readonly unit: Unit;
  readonly claim: Claim;
  readonly fees: UncollectedFees;
  readonly turn: Turn;
  /** Nothing is signed after this time. */
  readonly endsAt: MonotonicTime;
}

/** A unit's part of a signed transaction, which is stored in the unit's claim. */
export interface Signed extends AccountCost {
  readonly transaction: StoredTransaction;
  readonly part: CollectPart;
  readonly signedAt: MonotonicTime;
  /**
   * The most that the transaction can cost besides rent. 0 for all units but one, so that the fee
   * counts once.
   */
  readonly fee: Lamports;
}

/** What became of an attempt to sign. Only `signed` is sent. */
export type Prepared =
  | { readonly kind: "signed"; readonly signed: Signed }
  /** Too little would move, or with `error`, all simulations failed. */
  | {
      readonly kind: "nothing";
      readonly error?: CollectError | undefined;
      /** The coins whose simulation failed. */
      readonly failedMints: readonly string[];
    }
  /** The fee budget refuses all that may pay. */
  | { readonly kind: "refused"; readonly error: CollectError }
  /** Another replica has the claim. */
  | { readonly kind: "claim-lost" };

/** An account that shares a transaction, if it fits in. */
interface Sharer {
  readonly ready: ReadyUnit;
  readonly part: PlannedPart;
  readonly result: PromiseWithResolvers<Prepared | Alone>;
}

/** The account goes on without the others, after so many simulations together. */
interface Alone {
  readonly kind: "alone";
  readonly simulations: number;
}

/** After this many, nothing is signed. The last one has no coins. */
const MAX_SIMULATIONS = 3;
/** How long an account waits for others while transactions are in flight. */
const GATHER_MS = 100;
/** How much longer, while others may soon be ready. */
const EXPECT_MS = 200;
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

export type Transactions = ReturnType<typeof createTransactions>;

/**
 * Prepares the transactions of units: simulates them, leaves out what fails, chooses the price,
 * signs, and stores the transactions in the claims.
 *
 * Accounts without coins that are ready at the same moment share a transaction. While others may
 * soon be ready, or are in flight, they gather for a moment; a lone one never waits. A transaction
 * is all or nothing, so no account may fail the others: one that fails the simulation, moves too
 * little or needs a far higher price gets its own transaction.
 */
export function createTransactions(needs: {
  rpc: Rpc;
  composer: Composer;
  simulations: Simulations;
  feePayer: FeePayer;
  failures: Pick<Failures, "simulationFailed">;
  minCollectLamports: Lamports;
  maxPriorityFeeLamports: Lamports;
  /** Runs a preparation, whose calls to the chain belong to the blocks that pay. */
  ownCalls: ChainCallPlan["own"];
  /** The time between two polls for a landed transaction. */
  pollMs?: number | undefined;
  log: Logger;
}) {
  const { rpc, composer, feePayer, failures, log } = needs;
  const { minCollectLamports, maxPriorityFeeLamports, ownCalls, pollMs = POLL_MS } = needs;
  const { simulate, movedBy, recordMinimum, findTooExpensive, recordBlocked } = needs.simulations;
  const getBlockhash = memoize(() => rpc.getLatestBlockhash(), BLOCKHASH_MAX_AGE * pollMs);
  /** How many accounts may soon be ready to share a transaction. */
  let coming = 0;
  let sharers: Sharer[] = [];

  function depart(): void {
    const departing = sharers;
    sharers = [];
    void share(departing);
  }

  /** Departs if no other account may join. */
  function departIfAll(): void {
    if (coming === 0 && !feePayer.hasInFlight()) depart();
  }

  /** Waits with other accounts for a transaction that they share. */
  function gather(ready: ReadyUnit): Sharer["result"]["promise"] {
    const { account, vaults } = ready.unit;
    const part = composer.choosePart(account, [], vaults)!;
    const result = Promise.withResolvers<Prepared | Alone>();
    // Count the instructions before the simulation.
    if (!composer.fits([...sharers, { part }].map((each) => each.part))) depart();
    sharers.push({ ready, part, result });
    const group = sharers;
    const departLate = () => {
      if (sharers === group) depart();
    };
    setTimeout(() => {
      if (coming > 0) setTimeout(departLate, EXPECT_MS);
      else departLate();
    }, GATHER_MS);
    setImmediate(departIfAll);
    return result.promise;
  }

  /** Runs what all belong to that may pay: some may have joined. */
  function runFor<T>(units: readonly ReadyUnit[], run: () => Promise<T>): Promise<T> {
    const parts = equalParts(units.flatMap(({ turn }) => [...turn.payers.keys()]));
    return ownCalls({ use: "collects", parts }, run);
  }

  /** Signs for accounts together, and lets those go alone that would fail the others. */
  async function share(all: readonly Sharer[]): Promise<void> {
    let together = all;
    let simulations = 0;
    try {
      while (together.length > 1 && simulations < MAX_SIMULATIONS) {
        const group = together;
        const results = await runFor(
          group.map(({ ready }) => ready),
          () => trySharing(group),
        );
        simulations++;
        for (const [{ result }, preparation] of results)
          result.resolve(preparation ?? { kind: "alone", simulations });
        together = together.filter((sharer) => !results.has(sharer));
      }
      for (const { result } of together) result.resolve({ kind: "alone", simulations });
    } catch (error) {
      for (const { result } of together) result.reject(toError(error));
    }
  }

  /**
   * Returns the results of the accounts that leave the others: undefined for those that go alone.
   * If the transaction is signed, all leave.
   */
  async function trySharing(
    together: readonly Sharer[],
  ): Promise<Map<Sharer, Prepared | undefined>> {
    const goAlone = (some: readonly Sharer[]) => new Map(some.map((each) => [each, undefined]));
    const units = together.map(({ ready }) => ready);
    const parts = together.map(({ part }) => part);
    const { rentMinimum } = units[0]!.fees.vaults;
    const simulation = await simulateParts(parts, units);
    if ("err" in simulation) {
      const culprit = together.find(({ part }) => blamedIn(part, simulation.blamed).part);
      return goAlone(culprit ? [culprit] : together);
    }
    const movedAmounts = parts.map((part) => movedBy(part, rentMinimum, simulation));
    const small = together.filter(
      ({ ready }, i) =>
        isTooLittle(ready, movedAmounts[i]!) ||
        simulation.leftInAmm.get(ready.unit.account.ammVault),
    );
    if (small.length > 0) return goAlone(small);
    const terms = await getTerms(units, parts, simulation);
    const late = together.filter(({ ready }) => isLate(ready));
    if (late.length > 0) return goAlone(late);
    if (terms.price > MAX_PRICE_RATIO * PRIORITY_FEE_FLOOR_MICROLAMPORTS) {
      const prices = await Promise.all(
        parts.map(async (part) => toAffordable(await readPriceOf([part]), terms.unitLimit)),
      );
      const lowest = prices.reduce((least, price) => (price < least ? price : least));
      const expensive = together.filter((_, i) => prices[i]! > MAX_PRICE_RATIO * lowest);
      if (expensive.length > 0) return goAlone(expensive);
    }
    const results = await sign(units, parts, movedAmounts, simulation, terms);
    return new Map(together.flatMap((each, i) => (results[i] ? [[each, results[i]]] : [])));
  }

  /** Simulates the parts on a state at least as new as the one that was read. */
  const simulateParts = (parts: readonly PlannedPart[], units: readonly ReadyUnit[]) =>
    simulate(parts, {
      minSlot: Math.max(...units.map(({ fees }) => fees.slot)),
      rent: units[0]!.fees.vaults.rent,
    });

  const isTooLittle = ({ turn }: ReadyUnit, movedAmount: Lamports) =>
    movedAmount < minCollectLamports || !isWorthwhile(turn, movedAmount);
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
    units: readonly ReadyUnit[],
    parts: readonly CollectPart[],
    { unitsConsumed }: Simulated,
    terms = readTerms(parts),
  ) {
    const limit = Math.min(unitLimitOf(parts, unitsConsumed), MAX_UNIT_LIMIT - MAX_COUNTED_UNITS);
    const count = Math.max(...units.map(({ claim }) => claim.count));
    const unitLimit = limit + (count % MAX_COUNTED_UNITS);
    const [price, latest] = await terms;
    return { unitLimit, price: toAffordable(price, unitLimit), latest };
  }

  /**
   * Prepares a unit's own transaction, with at most {@link MAX_SIMULATIONS}, the last one without
   * coins. After a failed one, leaves out the coins or the AMM's transfer that it blames; if it
   * blames none, all coins. `first`: the number of the first simulation.
   */
  async function prepareAlone(ready: ReadyUnit, first: number): Promise<Prepared> {
    const { unit } = ready;
    const { account } = unit;
    const failedMints: string[] = [];
    let { sweeps, vaults } = unit;
    let error: CollectError | undefined;
    let earlyTerms: ReturnType<typeof readTerms> | undefined;
    for (let count = first; count <= MAX_SIMULATIONS; count++) {
      if (count === MAX_SIMULATIONS && first < count && unit.kind === "own") sweeps = [];
      const part = composer.choosePart(account, sweeps, vaults);
      if (!part) break;
      assertInTime(ready);
      // Other coins have other prices, and what a simulation leaves out must not decide the price.
      if (part.sweeps.length === 0) earlyTerms ??= readTerms([part]);
      const simulation = await simulateParts([part], [ready]);
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
      const movedAmount = movedBy(part, vaults.rentMinimum, simulation);
      for (const distribution of distributionsOf(part.sweeps))
        await recordMinimum(distribution, simulation).catch(() => undefined);
      if (isTooLittle(ready, movedAmount)) return { kind: "nothing", failedMints };
      const terms = await getTerms([ready], [part], simulation, earlyTerms);
      assertInTime(ready);
      const cost = BASE_FEE_LAMPORTS + priorityFee(terms.price, terms.unitLimit);
      if (unit.kind === "distribution" && movedAmount < cost + rentOf(part.sweeps))
        return { kind: "nothing", failedMints };
      logLeftOut(unit, part, error);
      const [result] = await sign([ready], [part], [movedAmount], simulation, terms);
      return result!;
    }
    logLeftOut(unit, undefined, error);
    return { kind: "nothing", error, failedMints };
  }

  /**
   * Signs one transaction for all units, and stores it in their claims. It is sent if one claim is
   * not lost. All then wait for it, also those whose claims are lost: it moves their fees too, and
   * the new holder does not know it. If the budget refuses some, nothing is signed: only these have
   * a result. Throws the errors of `feePayer.sign`.
   */
  async function sign(
    units: readonly ReadyUnit[],
    parts: readonly CollectPart[],
    movedAmounts: readonly Lamports[],
    simulation: Simulated,
    { latest, ...budget }: MessageBudget & { latest: Latest },
  ): Promise<(Prepared | undefined)[]> {
    const { rentMinimum } = units[0]!.fees.vaults;
    // The simulation charged no priority fee: the fee depends on the compute units that the
    // simulation measured.
    const spendable = simulation.left - priorityFee(budget.price, budget.unitLimit) - rentMinimum;
    const terms = { ...budget, guard: feePayer.guardOf(spendable) };
    const sweeps = parts.flatMap(({ account: { address }, sweeps: some }) =>
      some.map(({ coin: { mint }, stage }) => ({ address, mint, stage })),
    );
    const expectedRent = rentOf(parts.flatMap((part) => part.sweeps));
    const isDearer = sweeps.length > 0 && simulation.rent > expectedRent;
    const signature = await feePayer.sign(composer.compose(parts, terms, latest.blockhash), {
      spendable,
      rent: isDearer ? simulation.rent : expectedRent,
      sweeps,
      accounts: units.map(({ turn: { payers } }, i) => ({ moved: movedAmounts[i]!, payers })),
    });
    if (signature.kind === "refused")
      return signature.errors.map((error) => error && { kind: "refused", error });
    const signedAt = monotonicNow();
    const transaction: StoredTransaction = {
      ...{ base64: signature.base64, signature: signature.signature },
      lastValidBlockHeight: latest.lastValidBlockHeight,
      isShared: units.length > 1,
      sweptMints: sweeps.length > 0 ? [...new Set(sweeps.map(({ mint }) => mint))] : undefined,
    };
    const areStored = await Promise.all(units.map(({ claim }) => claim.store(transaction)));
    const firstStored = areStored.indexOf(true);
    return parts.map((part, i): Prepared => {
      const cost = signature.costs[i]!;
      if (firstStored < 0) {
        cost.close(cost.cost);
        return { kind: "claim-lost" };
      }
      const fee = i === firstStored ? signature.fee : toLamports(0);
      return { kind: "signed", signed: { ...cost, transaction, part, signedAt, fee } };
    });
  }

  function logLeftOut(unit: Unit, part: CollectPart | undefined, err: Error | undefined): void {
    if (!err) return;
    const mints = new Set(unit.sweeps.map(({ coin }) => coin.mint));
    for (const { coin } of part?.sweeps ?? []) mints.delete(coin.mint);
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
    async prepare(ready: ReadyUnit, { mayShare }: { mayShare: boolean }): Promise<Prepared> {
      const shared: Prepared | Alone = mayShare
        ? await gather(ready)
        : { kind: "alone", simulations: 0 };
      if (shared.kind !== "alone") return shared;
      const first = Math.min(shared.simulations + 1, MAX_SIMULATIONS);
      return runFor([ready], () => prepareAlone(ready, first));
    },

    /** Runs a step after which an account without coins may be ready to share a transaction. */
    expect<T>(step: Promise<T>): Promise<T> {
      coming++;
      return step.finally(() =>
        // After what follows the step at once.
        setImmediate(() => {
          coming--;
          departIfAll();
        }),
      );
    },
  };
}

type Latest = Awaited<ReturnType<Rpc["getLatestBlockhash"]>>;

function without(sweeps: readonly Sweep[], some: readonly Sweep[]): Sweep[] {
  return sweeps.filter(
    ({ coin, stage }) => !some.some((each) => each.coin.mint === coin.mint && each.stage === stage),
  );
}

const isLate = ({ endsAt }: ReadyUnit): boolean => monotonicNow() > endsAt;

function assertInTime(ready: ReadyUnit): void {
  if (isLate(ready)) throw new CollectError({ kind: "timed-out" });
}
