import type { Logger } from "../../observability/log.ts";
import { toError } from "../../observability/thrown.ts";
import { memoize } from "../../store/memoize.ts";
import { equalParts, type ChainCallPlan } from "../../fairness/chain-call-plan.ts";
import { monotonicNow, type MonotonicTime } from "../../time/monotonic.ts";
import {
  distributionsOf,
  rentOf,
  sweepsOf,
  withoutAmm,
  type Sweep,
} from "../launchpad/choose-sweeps.ts";
import { CollectError } from "../errors/collect-error.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import { priorityFeeOf, readPrice } from "../units/priority-fee.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import type { Composer } from "../units/composer.ts";
import type { CollectPart, PlannedPart } from "../units/part.ts";
import type { Failures } from "../balances/failures.ts";
import type { Simulated, Simulations } from "../units/simulations.ts";
import { MAX_UNIT_LIMIT, unitLimitOf } from "../units/instruction-costs.ts";
import { failureKey, type Unit } from "../units/units.ts";
import type { Claim, StoredTransaction } from "./claims.ts";
import type { AccountCost, FeePayer } from "./fee-payer.ts";
import { WAITS } from "./send-and-confirm.ts";
import type { Turn } from "./turns.ts";

/** A unit that is ready for a transaction: its claim is held, and its fees are read. */
interface ReadyUnit {
  readonly unit: Unit;
  readonly claim: Claim;
  /** In which its fees were read. */
  readonly slot: number;
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
  | { readonly kind: "nothing"; readonly error?: CollectError | undefined }
  /** The fee budget refuses all that may pay, each address block for its own reason. */
  | { readonly kind: "refused"; readonly errors: ReadonlyMap<string, CollectError> }
  /** Another replica has taken the claim. */
  | { readonly kind: "again" };

/** A unit, and what a transaction is to do for it. */
interface Member extends ReadyUnit {
  readonly part: PlannedPart;
}

/** An account that shares a transaction, if it fits in. */
interface Sharer extends Member {
  /** Resolves with undefined if the account goes on alone. */
  readonly result: PromiseWithResolvers<Prepared | undefined>;
}

/** After this many, nothing is signed. The last one has no coins. */
const MAX_SIMULATIONS = 3;
/** How long an account waits for others. */
const GATHER_MS = 300;
/** How long signed transactions share a blockhash, as a multiple of the time between two polls. */
const BLOCKHASH_MAX_AGE = 3;
/**
 * A unit's transactions differ in their compute-unit limit, by how many the unit has had: equal
 * bytes would be one transaction. Costs at most a lamport at the lowest price.
 */
const MAX_COUNTED_UNITS = 1_000;

export type Prepare = ReturnType<typeof createPrepare>;

/**
 * Returns a function that prepares the transactions of units: simulates them, leaves out what fails, chooses the price,
 * signs, and stores the transactions in the claims.
 *
 * Accounts without coins that are ready at about the same moment share a transaction. A transaction
 * is all or nothing, so no account may fail the others: one that fails the simulation, or moves too
 * little, gets its own transaction.
 */
export function createPrepare(needs: {
  rpc: Rpc;
  composer: Composer;
  simulations: Simulations;
  feePayer: FeePayer;
  failures: Pick<Failures, "simulationFailed">;
  minCollectLamports: Lamports;
  maxPriorityFeeLamports: Lamports;
  /** Runs a preparation for several accounts, whose calls to the chain belong to all that pay. */
  ownCalls: ChainCallPlan["own"];
  /** The time between two polls for a landed transaction. */
  pollMs?: number | undefined;
  log: Logger;
}) {
  const { rpc, composer, feePayer, failures, log } = needs;
  const { minCollectLamports, maxPriorityFeeLamports, ownCalls, pollMs = WAITS.pollMs } = needs;
  const { simulate, recordMinimum, findTooExpensive, recordBlocked } = needs.simulations;
  const getBlockhash = memoize(() => rpc.getLatestBlockhash(), BLOCKHASH_MAX_AGE * pollMs);
  let gathered: Sharer[] = [];

  /** Waits with other accounts for a transaction that they share. */
  function gather(ready: ReadyUnit): Sharer["result"]["promise"] {
    const { account, vaults } = ready.unit;
    const part = composer.choosePart(account, [], vaults)!;
    const result = Promise.withResolvers<Prepared | undefined>();
    // Count the instructions before the simulation.
    if (gathered.length === 0 || !composer.fits([...gathered.map((each) => each.part), part])) {
      const group: Sharer[] = [];
      gathered = group;
      setTimeout(() => {
        if (gathered === group) gathered = [];
        share(group).catch((error: unknown) => {
          for (const each of group) each.result.reject(toError(error));
        });
      }, GATHER_MS);
    }
    gathered.push({ ...ready, part, result });
    return result.promise;
  }

  /** Signs for accounts together, and lets those go alone that would fail the others. */
  async function share(together: readonly Sharer[], simulations = 0): Promise<void> {
    if (together.length < 2 || simulations === MAX_SIMULATIONS) {
      leave(together, together);
      return;
    }
    const blocks = together.flatMap(({ turn }) => turn.blocks);
    const others = await ownCalls({ use: "collects", parts: equalParts(blocks) }, () =>
      trySharing(together),
    );
    await share(others, simulations + 1);
  }

  /** Returns the accounts that go on together: none, once the transaction is signed. */
  async function trySharing(together: readonly Sharer[]): Promise<readonly Sharer[]> {
    const [simulation, ...terms] = await simulateMembers(together);
    if ("error" in simulation) {
      const culprit = together.find(({ part }) => part === simulation.blamed?.part);
      return leave(together, culprit ? [culprit] : together);
    }
    const unfit = together.filter(
      (each) => isTooLittle(each, simulation) || monotonicNow() > each.endsAt,
    );
    if (unfit.length > 0) return leave(together, unfit);
    const results = await sign(together, simulation, terms);
    return together.filter(({ result }, i) => {
      if (results[i]) result.resolve(results[i]);
      return !results[i];
    });
  }

  /**
   * Simulates a transaction on a state at least as new as the one that was read, and reads what
   * else it needs.
   */
  function simulateMembers(members: readonly Member[]) {
    const parts = members.map(({ part }) => part);
    return Promise.all([
      simulate(parts, Math.max(...members.map(({ slot }) => slot))),
      readPrice(rpc, composer.writableOf(parts)),
      getBlockhash(),
    ]);
  }

  /** Whether the transaction moves so little that no request of the unit wants it. */
  function isTooLittle({ turn, part }: Member, { movedBy }: Simulated): boolean {
    const movedAmount = movedBy(part);
    return (
      movedAmount < minCollectLamports ||
      turn.members.every(({ request }) => movedAmount < request.minimum)
    );
  }

  /**
   * Prepares a unit's own transaction, with at most {@link MAX_SIMULATIONS}, the last one without
   * coins. After a failed one, leaves out the coins or the AMM's transfer that it blames; if it
   * blames none, all coins.
   */
  async function prepareAlone(ready: ReadyUnit): Promise<Prepared> {
    const { unit } = ready;
    const { account } = unit;
    let { sweeps, vaults } = unit;
    let error: CollectError | undefined;
    for (let count = 1; count <= MAX_SIMULATIONS; count++) {
      if (count === MAX_SIMULATIONS && unit.kind === "own") sweeps = [];
      const part = composer.choosePart(account, sweeps, vaults);
      if (!part) break;
      const member = { ...ready, part };
      const [simulation, ...terms] = await simulateMembers([member]);
      let omitted: readonly Sweep[];
      if ("error" in simulation) {
        ({ error } = simulation);
        const { sweep: failedSweep, isAmm = part.withAmm && part.sweeps.length === 0 } =
          simulation.blamed ?? {};
        const others = isAmm ? [] : part.sweeps;
        omitted = failedSweep ? [failedSweep] : others;
        log.warn(
          { address: account.address, mints: omitted.map(({ coin }) => coin.mint), err: error },
          "a collect leaves out coins or the AMM's fees, because they fail its simulation: if every collect does, the launch platform has changed, so install a new version",
        );
        recordBlocked(omitted, simulation);
        for (const sweep of omitted) failures.simulationFailed(failureKey(sweep), error);
        if (isAmm) {
          failures.simulationFailed(account.ammVault, error);
          [vaults, omitted] = [withoutAmm(vaults), sweepsOf("POOL", part.sweeps)];
        } else if (part.sweeps.length === 0) {
          if (unit.sweeps.length === 0) failures.simulationFailed(unit.key, error);
          break;
        }
      } else {
        omitted = findTooExpensive(part, simulation.rent);
        if (omitted.length === 0) {
          for (const distribution of distributionsOf(part.sweeps))
            await recordMinimum(distribution, simulation).catch(() => undefined);
          if (isTooLittle(member, simulation)) return { kind: "nothing" };
          const [result] = await sign([member], simulation, terms);
          return result!;
        }
      }
      sweeps = part.sweeps.filter((each) => !omitted.includes(each));
    }
    return { kind: "nothing", error };
  }

  /**
   * Signs one transaction for all units, and stores it in their claims. It is sent if one claim is
   * not lost. All then wait for it, also those whose claims are lost: it moves their fees too, and
   * the new holder does not know it. If the budget refuses some, nothing is signed: only these have
   * a result. Throws {@link CollectError} `timed-out`, and the errors of `feePayer.sign`.
   */
  async function sign(
    members: readonly Member[],
    simulation: Simulated,
    [recentPrice, latest]: readonly [bigint, Awaited<ReturnType<typeof getBlockhash>>],
  ): Promise<(Prepared | undefined)[]> {
    if (members.some(({ endsAt }) => monotonicNow() > endsAt))
      throw new CollectError({ kind: "timed-out" });
    const parts = members.map(({ part }) => part);
    const { rentMinimum } = parts[0]!.vaults;
    const least = unitLimitOf(parts, simulation.unitsConsumed);
    const count = Math.max(...members.map(({ claim }) => claim.count));
    const unitLimit =
      Math.min(least, MAX_UNIT_LIMIT - MAX_COUNTED_UNITS) + (count % MAX_COUNTED_UNITS);
    const priorityFee = priorityFeeOf(recentPrice, unitLimit, maxPriorityFeeLamports);
    // The simulation charged no priority fee: the fee depends on the compute units that the
    // simulation measured.
    const spendable = simulation.left - priorityFee - rentMinimum;
    const terms = { unitLimit, priorityFee, guard: feePayer.guardOf(spendable) };
    const sweeps = parts.flatMap(({ account: { address }, sweeps: some }) =>
      some.map(({ coin: { mint }, stage }) => ({ address, mint, stage })),
    );
    const expectedRent = rentOf(parts.flatMap((part) => part.sweeps));
    const signature = await feePayer.sign(composer.compose(parts, terms, latest.blockhash), {
      spendable,
      rent: simulation.rent > expectedRent ? simulation.rent : expectedRent,
      sweeps,
      accounts: members.map(({ turn, part }) => ({
        moved: simulation.movedBy(part),
        blocks: turn.blocks,
      })),
    });
    if (signature.kind === "refused")
      return signature.errors.map((errors) => errors && { kind: "refused", errors });
    const signedAt = monotonicNow();
    const transaction: StoredTransaction = {
      ...{ base64: signature.base64, signature: signature.signature },
      lastValidBlockHeight: latest.lastValidBlockHeight,
      isShared: members.length > 1,
      sweptMints: [...new Set(sweeps.map(({ mint }) => mint))],
    };
    const areStored = await Promise.all(members.map(({ claim }) => claim.store(transaction)));
    return parts.map((part, i): Prepared => {
      const cost = signature.costs[i]!;
      if (!areStored.includes(true)) {
        cost.close(cost.cost);
        return { kind: "again" };
      }
      const fee = i === 0 ? signature.fee : toLamports(0);
      return { kind: "signed", signed: { ...cost, transaction, part, signedAt, fee } };
    });
  }

  /**
   * Simulates, signs and stores the transaction of a unit, alone or together with other accounts.
   * Throws {@link CollectError}, {@link RpcError}, or an error that marks a bug.
   */
  return async (ready: ReadyUnit, mayShare: boolean): Promise<Prepared> => {
    const shared = mayShare ? await gather(ready) : undefined;
    return shared ?? prepareAlone(ready);
  };
}

/** Lets some go on alone. Returns the others. */
function leave(together: readonly Sharer[], some: readonly Sharer[]): Sharer[] {
  for (const { result } of some) result.resolve(undefined);
  return together.filter((each) => !some.includes(each));
}
