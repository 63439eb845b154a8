import type { Failures } from "../balances/failures.ts";
import {
  distributionsOf,
  isRentAcceptable,
  isWithPool,
  rentOf,
  type Distribution,
  type Sweep,
} from "../launchpad/choose-sweeps.ts";
import type { CoinAddresses } from "../launchpad/coin-addresses.ts";
import { CollectError } from "../errors/collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
import { rentMinimumOf } from "../primitives/rent.ts";
import { BASE_FEE_LAMPORTS } from "./priority-fee.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import type { Simulation } from "../rpc/simulate-transaction.ts";
import { failedInstruction, isFeePayerShort, isTooLarge } from "../errors/transaction-error.ts";
import type { TransactionError } from "../rpc/rpc-results.ts";
import { leastDistribution, partOf } from "../balances/shared-fees.ts";
import { isTokenAccount, TOKEN_ACCOUNT_BYTES } from "../launchpad/token-accounts.ts";
import { MAX_UNIT_LIMIT } from "./instruction-costs.ts";
import type { Composer, TransactionTerms } from "./composer.ts";
import type { CollectPart, PlannedPart } from "./part.ts";
import { accountKeysOf, accountsBlamedBy, messageOf, toTransaction } from "./message.ts";

/** A simulated transaction that succeeds. */
export interface Simulated {
  readonly unitsConsumed: number;
  /** Returns the lamports of a vault, or of the fee payer, after the transaction. */
  readonly after: (address: string) => Lamports;
  /**
   * Returns what a part can move for the account at most: less than was read, if somebody else has
   * collected meanwhile.
   */
  readonly mostOf: (part: PlannedPart) => Lamports;
  /** By AMM vault's address: the lamports that remain there after the AMM's transfer. */
  readonly leftInAmm: ReadonlyMap<string, Lamports>;
  /** What the fee payer lost besides the base fee. */
  readonly rent: Lamports;
  /** The fee payer's lamports after the transaction. */
  readonly left: Lamports;
}

export interface FailedSimulation {
  readonly err: TransactionError;
  readonly error: CollectError;
  /** See {@link accountsBlamedBy}. */
  readonly blamed: readonly string[];
}

/** The terms of all simulated transactions. They charge no priority fee. */
const SIMULATED_TERMS: TransactionTerms = { price: 0n, unitLimit: MAX_UNIT_LIMIT, guard: 1n };
export type Simulations = ReturnType<typeof createSimulations>;

/** Simulates the transactions of units, and judges what they show. */
export function createSimulations(needs: {
  rpc: Pick<Rpc, "simulateTransaction" | "getAccounts">;
  composer: Pick<Composer, "compose">;
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
   * their reads must be. A message that cannot be compiled counts as a failed simulation. Rejects
   * with an {@link RpcError}, or with a {@link CollectError} `fee-payer-short`.
   */
  async function simulate(
    parts: readonly PlannedPart[],
    minSlot: number,
  ): Promise<Simulated | FailedSimulation> {
    const sweeps = parts.flatMap((part) => part.sweeps);
    const distributions = distributionsOf(sweeps);
    const ammVaults = [
      ...parts.filter(({ withAmm }) => withAmm).map(({ account }) => account.ammVault),
      ...distributions.filter(isWithPool).map(({ coin }) => coin.sharingConfig.ammVault),
    ];
    const base64 = composeSimulation(parts);
    if (base64 === undefined) return toFailure("SanitizeFailure", [], "");
    const emptiedVaults = [
      ...parts.filter(({ withVaults }) => withVaults).map(({ account }) => account.creatorVault),
      ...distributions.map(({ coin }) => coin.sharingConfig.creatorVault),
    ];
    const ammReserve = rentMinimumOf(parts[0]!.vaults.rent, TOKEN_ACCOUNT_BYTES);
    /** Returns what the AMM's transfer left, if it was skipped. */
    const leftIn = ({ accounts }: Simulation, ammVault: string): Lamports => {
      const account = accounts.get(ammVault);
      const isThere = account && isTokenAccount(account);
      return isThere ? saturatingSubtract(account.lamports, ammReserve) : toLamports(0);
    };

    const accountKeys = accountKeysOf(base64) ?? [];
    const beforeIn = ({ preBalances }: Simulation, address: string) =>
      preBalances[accountKeys.indexOf(address)];
    const afterIn = ({ accounts }: Simulation, address: string): Lamports =>
      accounts.get(address)?.lamports ?? toLamports(0);
    /** What was read, but at most what the vaults lose and the sweeps bring. */
    function mostIn(simulation: Simulation, part: PlannedPart): Lamports {
      const { account, withVaults, withAmm, amount } = part;
      if (!withVaults) return amount;
      let most = part.sweeps.reduce((sum, sweep) => sum + sweep.amount + sweep.rent, 0n);
      for (const vault of [account.creatorVault, ...(withAmm ? [account.ammVault] : [])]) {
        const before = beforeIn(simulation, vault);
        if (before === undefined) return amount;
        most += before - afterIn(simulation, vault);
      }
      return most < amount ? toLamports(most > 0n ? most : 0n) : amount;
    }

    const simulation = await rpc.simulateTransaction(base64, {
      addresses: [...emptiedVaults, feePayer, ...ammVaults],
      feePayer,
      minSlot,
    });
    if (simulation.err !== null) return toFailure(simulation.err, simulation.logs, base64);
    const left = afterIn(simulation, feePayer);
    // Without sweeps, nothing of the fee payer but the fee is at stake.
    const before = beforeIn(simulation, feePayer) ?? (sweeps.length > 0 ? await readPayer() : left);
    return {
      unitsConsumed: simulation.unitsConsumed,
      after: (address) => afterIn(simulation, address),
      mostOf: (part) => mostIn(simulation, part),
      leftInAmm: new Map(ammVaults.map((vault) => [vault, leftIn(simulation, vault)])),
      rent: rentIn(before, left),
      left,
    };
  }

  /** Returns undefined if the message cannot be compiled. */
  function composeSimulation(parts: readonly CollectPart[]): string | undefined {
    try {
      return toTransaction(composer.compose(parts, SIMULATED_TERMS), feePayer);
    } catch {
      return undefined;
    }
  }

  async function readPayer(): Promise<Lamports> {
    const [account] = await rpc.getAccounts([feePayer]);
    return account?.lamports ?? toLamports(0);
  }

  /** Returns the lamports that a simulated part moves for the account. */
  function movedBy(part: PlannedPart, simulation: Simulated): Lamports {
    const { account, sweeps, withVaults } = part;
    const { rentMinimum } = part.vaults;
    const { address, creatorVault, ammVault } = account;
    const { after, leftInAmm, mostOf } = simulation;
    const [distribution] = distributionsOf(sweeps);
    if (distribution) {
      const { coin, shareholders, distributable } = distribution;
      const inAmm = leftInAmm.get(coin.sharingConfig.ammVault) ?? 0n;
      const leftAmount = toLamports(undistributedIn(coin, rentMinimum, simulation) + inAmm);
      // The parts are rounded down, and the rest stays in the vault.
      const isRest = leftAmount < BigInt(shareholders.length);
      const distributedAmount = isRest
        ? distributable
        : saturatingSubtract(distributable, leftAmount);
      return toLamports(partOf(distributedAmount, shareholders, address));
    }
    // Count what vaults and coins lose, not what the address gains: the owner may withdraw at any
    // moment.
    const inVault = withVaults ? after(creatorVault) : rentMinimum;
    const keptAmount = saturatingSubtract(inVault, rentMinimum) + (leftInAmm.get(ammVault) ?? 0n);
    const lostAmount = saturatingSubtract(part.amount, toLamports(keptAmount));
    const most = mostOf(part);
    return lostAmount < most ? lostAmount : most;
  }

  /** Returns what a simulated distribution leaves in the sharing config's creator vault. */
  const undistributedIn = (
    { sharingConfig }: CoinAddresses,
    rentMinimum: Lamports,
    { after }: Simulated,
  ): Lamports => saturatingSubtract(after(sharingConfig.creatorVault), rentMinimum);

  /**
   * Remembers for lookups whether a simulated distribution pays. If it leaves what is worth a
   * collect, reads the shareholders for the minimum.
   */
  async function recordMinimum(
    { coin, shareholders, vaults: { rent, rentMinimum } }: Distribution,
    simulation: Simulated,
  ): Promise<void> {
    const leftAmount = undistributedIn(coin, rentMinimum, simulation);
    if (leftAmount < minCollectLamports) {
      failures.found(coin.mint, undefined);
      return;
    }
    const accounts = await rpc.getAccounts(shareholders.map(({ address }) => address));
    const states = shareholders.map(({ bps }, i) => {
      const { lamports = 0n, space = 0 } = accounts[i] ?? {};
      return { bps, lamports, bytes: space };
    });
    const least = leastDistribution(states, rent);
    if (leftAmount < least) failures.found(coin.mint, "BELOW_SHARING_MINIMUM", least - 1n);
  }

  /**
   * Returns the sweep to leave out: the smallest, if the simulated rent exceeds the expected rent
   * and is too high. Which sweep costs more is unknown, so the whole rent must be acceptable for
   * the smallest one alone.
   */
  function findTooExpensive({ sweeps }: CollectPart, rent: Lamports): Sweep[] {
    if (sweeps.length === 0 || rent <= rentOf(sweeps)) return [];
    const smallest = sweeps.reduce((a, b) => (b.amount < a.amount ? b : a));
    return rent <= maxRentLamports && isRentAcceptable(rent, smallest.amount) ? [] : [smallest];
  }

  /** Records that shareholders may block the distributions of a failed simulation. */
  function recordBlocked(failedSweeps: readonly Sweep[], { err }: FailedSimulation): void {
    if (!isOfShareholders(err)) return;
    for (const { coin } of distributionsOf(failedSweeps))
      failures.found(coin.mint, "SHAREHOLDER_BLOCKED");
  }

  return { simulate, movedBy, recordMinimum, findTooExpensive, recordBlocked };
}

/** Throws {@link CollectError} `fee-payer-short`. `logs`: the node's. */
function toFailure(
  err: TransactionError,
  logs: readonly string[],
  base64: string,
): FailedSimulation {
  if (isFeePayerShort(err)) {
    const detail = `the simulation failed: ${JSON.stringify(err)}`;
    throw new CollectError({ kind: "fee-payer-short", detail });
  }
  // The runtime's last line about a failed program. Programs' own lines may say anything.
  const programError = logs.findLast((line) => /^Program \w+ failed: /.test(line));
  const message = messageOf(base64);
  return {
    err,
    error: new CollectError({ kind: "simulation-failed", err, programError }),
    blamed: message ? accountsBlamedBy(message, err) : [],
  };
}

/** Returns what the fee payer loses besides the base fee. */
function rentIn(before: Lamports, left: Lamports): Lamports {
  return saturatingSubtract(before, toLamports(left + BASE_FEE_LAMPORTS));
}

/**
 * Whether a shareholder may be why a distribution failed. The accounts that are read do not show
 * such causes.
 */
function isOfShareholders(err: TransactionError): boolean {
  if (isTooLarge(err)) return false;
  return err === "MaxLoadedAccountsDataSizeExceeded" || failedInstruction(err) !== undefined;
}
