import type { Failures } from "../balances/failures.ts";
import {
  distributionsOf,
  isRentAcceptable,
  rentOf,
  type Distribution,
  type Sweep,
} from "../launchpad/choose-sweeps.ts";
import { CollectError } from "../errors/collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
import { BASE_FEE_LAMPORTS } from "./priority-fee.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { isFeePayerShort } from "../errors/transaction-error.ts";
import type { TransactionError } from "../rpc/rpc-results.ts";
import { leastDistribution } from "../balances/shared-fees.ts";
import { MAX_UNIT_LIMIT } from "./instruction-costs.ts";
import type { Composer, Step } from "./composer.ts";
import type { CollectPart, PlannedPart } from "./part.ts";
import { accountKeysOf, toTransaction } from "./message.ts";

/** A simulated transaction that succeeds. */
export interface Simulated {
  readonly unitsConsumed: number;
  /** Returns the lamports of a distribution's vault, or of the fee payer, after the transaction. */
  readonly after: (address: string) => Lamports;
  /** Returns the lamports that a part moves to its account's address. */
  readonly movedBy: (part: PlannedPart) => Lamports;
  /** What the fee payer lost besides the base fee. */
  readonly rent: Lamports;
  /** The fee payer's lamports after the transaction. */
  readonly left: Lamports;
}

export interface FailedSimulation {
  readonly err: TransactionError;
  readonly error: CollectError;
  /** See {@link Composer.blame}. */
  readonly blamed: Step | undefined;
}

export type Simulations = ReturnType<typeof createSimulations>;

/** Simulates the transactions of units, and judges what they show. */
export function createSimulations(needs: {
  rpc: Pick<Rpc, "simulateTransaction" | "getAccounts">;
  composer: Pick<Composer, "compose" | "blame">;
  failures: Pick<Failures, "found">;
  /** In base58. */
  feePayer: string;
  minCollectLamports: Lamports;
  /** The most rent that one collect may pay. */
  maxRentLamports: Lamports;
}) {
  const { rpc, composer, failures, feePayer, minCollectLamports, maxRentLamports } = needs;

  /**
   * Simulates a transaction of one or several parts, in a slot at or after `minSlot`, which that of
   * their reads must be. Rejects with an {@link RpcError}, or with a {@link CollectError}
   * `fee-payer-short`.
   */
  async function simulate(
    parts: readonly PlannedPart[],
    minSlot: number,
  ): Promise<Simulated | FailedSimulation> {
    const sweeps = parts.flatMap((part) => part.sweeps);
    const terms = { priorityFee: 0n, unitLimit: MAX_UNIT_LIMIT, guard: 1n };
    const base64 = toTransaction(composer.compose(parts, terms), feePayer);
    const { err, logs, unitsConsumed, accounts, preBalances } = await rpc.simulateTransaction(
      base64,
      {
        addresses: [
          feePayer,
          ...parts.map(({ account }) => account.address),
          ...distributionsOf(sweeps).map(({ coin }) => coin.sharingConfig.creatorVault),
        ],
        minSlot,
      },
    );
    if (err !== null) return { err, error: toError(err, logs), blamed: composer.blame(parts, err) };
    const accountKeys = accountKeysOf(base64) ?? [];
    /** Undefined at nodes older than Agave 3.0. */
    const before = (address: string) => preBalances[accountKeys.indexOf(address)];
    const after = (address: string) => accounts.get(address)?.lamports ?? toLamports(0);
    const left = after(feePayer);
    const held = before(feePayer) ?? (await readPayer());
    return {
      unitsConsumed,
      after,
      movedBy({ account: { address }, amount }) {
        const earlier = before(address);
        return earlier === undefined ? amount : saturatingSubtract(after(address), earlier);
      },
      rent: saturatingSubtract(held, toLamports(left + BASE_FEE_LAMPORTS)),
      left,
    };
  }

  async function readPayer(): Promise<Lamports> {
    const [account] = await rpc.getAccounts([feePayer]);
    return account?.lamports ?? toLamports(0);
  }

  /**
   * Remembers for lookups whether a simulated distribution pays. If it leaves what is worth a
   * collect, reads the shareholders for the minimum.
   */
  async function recordMinimum(
    { coin, shareholders, vaults: { rent, rentMinimum } }: Distribution,
    simulation: Simulated,
  ): Promise<void> {
    const { creatorVault } = coin.sharingConfig;
    const leftAmount = saturatingSubtract(simulation.after(creatorVault), rentMinimum);
    if (leftAmount < minCollectLamports) {
      failures.found(coin.mint, undefined);
      return;
    }
    const accounts = await rpc.getAccounts(shareholders.map(({ address }) => address));
    const least = leastDistribution(shareholders, accounts, rent);
    if (leftAmount < least) failures.found(coin.mint, "BELOW_SHARING_MINIMUM", least - 1n);
  }

  /**
   * Returns the sweep to leave out: the smallest, if the simulated rent exceeds the expected rent
   * and is too high. Which sweep costs more is unknown, so the whole rent must be acceptable for
   * the smallest one alone.
   */
  function findTooExpensive({ sweeps }: CollectPart, rent: Lamports): Sweep[] {
    // The largest is the first.
    const smallest = sweeps.at(-1);
    if (!smallest || rent <= rentOf(sweeps)) return [];
    return isRentAcceptable(rent, smallest.amount, maxRentLamports) ? [] : [smallest];
  }

  /**
   * Records that shareholders may block the distributions of a failed simulation. The accounts that
   * are read do not show such causes.
   */
  function recordBlocked(failedSweeps: readonly Sweep[], { err, blamed }: FailedSimulation): void {
    if (!blamed && err !== "MaxLoadedAccountsDataSizeExceeded") return;
    for (const { coin } of distributionsOf(failedSweeps))
      failures.found(coin.mint, "SHAREHOLDER_BLOCKED");
  }

  return { simulate, recordMinimum, findTooExpensive, recordBlocked };
}

/** Throws {@link CollectError} `fee-payer-short`. `logs`: the node's. */
function toError(err: TransactionError, logs: readonly string[]): CollectError {
  if (isFeePayerShort(err)) {
    const detail = `the simulation failed: ${JSON.stringify(err)}`;
    throw new CollectError({ kind: "fee-payer-short", detail });
  }
  // The runtime's last line about a failed program. Programs' own lines may say anything.
  const programError = logs.findLast((line) => /^Program \w+ failed: /.test(line));
  return new CollectError({ kind: "simulation-failed", err, programError });
}
