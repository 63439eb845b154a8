import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import { BASE_FEE_LAMPORTS } from "../../priority-fee.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import type { Simulation } from "../../rpc/simulations.ts";
import { isFeePayerShort, type TransactionError } from "../../rpc/transaction-error.ts";
import type { Floors } from "../../slots/stale-balances.ts";
import { distributionsOf, rentOf } from "../../choose-sweeps.ts";
import { readWrappedSol } from "../../token-accounts.ts";
import type { CollectPart, Composer, TransactionTerms } from "../message/composer.ts";
import { MAX_UNIT_LIMIT, toTransaction } from "../message/message.ts";

/** A simulated transaction that succeeds. */
export interface Simulated {
  readonly unitsConsumed: number;
  /** Returns the lamports of a vault, or of the fee payer, after the transaction. */
  readonly after: (address: string) => Lamports;
  /** By AMM vault's address: the lamports that remain there after the AMM's transfer. */
  readonly leftInAmm: ReadonlyMap<string, Lamports>;
  /** What the fee payer lost besides the base fee. */
  readonly rent: Lamports;
  /** The fee payer's lamports after the transaction, as simulated. */
  readonly left: Lamports;
  /**
   * The same with sweeps, but at most what another endpoint allows (if one works): a message must
   * not demand more of the fee payer because one endpoint overstates its balance.
   */
  readonly certainlyLeft: Lamports;
}

export interface FailedSimulation {
  readonly err: TransactionError;
  readonly logs: readonly string[];
}

/** The terms of all simulated transactions. They charge no priority fee. */
export const SIMULATED_TERMS: TransactionTerms = {
  price: 0n,
  unitLimit: MAX_UNIT_LIMIT,
  guard: 1n,
};

/** How much worse a simulation is than planned. */
const SEVERITY = { asPlanned: 0, leavesFees: 1, fails: 2, feePayerShort: 3 };

/**
 * Simulates a transaction of one or several accounts. `feePayer` is in base58. With fewer lamports
 * than `leastLeft` after the transaction, the fee payer counts as short. `rentMinimum`: what an
 * emptied vault keeps. Rejects with an {@link RpcError}.
 */
export async function simulate(
  needs: {
    rpc: Rpc;
    floors: Pick<Floors, "landedSlotOf">;
    composer: Composer;
    feePayer: string;
    leastLeft: bigint;
    rentMinimum: Lamports;
  },
  parts: readonly CollectPart[],
): Promise<Simulated | FailedSimulation> {
  const { rpc, floors, composer, feePayer, leastLeft, rentMinimum } = needs;
  const sweeps = parts.flatMap((part) => part.sweeps);
  const distributions = distributionsOf(sweeps);
  const base64 = toTransaction(composer.compose(parts, SIMULATED_TERMS), feePayer);
  const ammVaults = [
    ...parts.filter(({ withAmm }) => withAmm).map(({ account }) => account.ammVault),
    ...distributions
      .filter(({ withPool }) => withPool)
      .map(({ coin }) => coin.sharingConfig.ammVault),
  ];
  const emptied = [
    ...parts.filter(({ withVaults }) => withVaults).map(({ account }) => account.creatorVault),
    ...distributions.map(({ coin }) => coin.sharingConfig.creatorVault),
  ];
  /** The remainders of rounded shares, at most. */
  const remainders = distributions.reduce((sum, { shareholders }) => sum + shareholders.length, 0);

  function severityOf(simulation: Simulation): number {
    if (simulation.err !== null)
      return isFeePayerShort(simulation.err) ? SEVERITY.feePayerShort : SEVERITY.fails;
    const { accounts, payerBefore, left } = simulation;
    if (left < leastLeft) return SEVERITY.feePayerShort;
    const inVaults = emptied.reduce(
      (sum, vault) => sum + saturatingSubtract(accounts.get(vault)!.lamports, rentMinimum),
      0n,
    );
    const inAmm = ammVaults.reduce(
      (sum, vault) => sum + (readWrappedSol(accounts.get(vault)) ?? 0n),
      0n,
    );
    const isAsPlanned =
      inVaults + inAmm <= BigInt(remainders) && rentIn(payerBefore ?? left, left) <= rentOf(sweeps);
    return isAsPlanned ? SEVERITY.asPlanned : SEVERITY.leavesFees;
  }

  const simulated = await rpc.simulateTransaction(base64, {
    addresses: [
      ...parts.map(({ account }) => account.creatorVault),
      feePayer,
      ...distributions.map(({ coin }) => coin.sharingConfig.creatorVault),
      ...ammVaults,
    ],
    feePayer,
    severityOf,
    minSlot: Math.max(...parts.map(({ account }) => floors.landedSlotOf(account.address))),
  });
  if (simulated.err !== null) return simulated;
  const { unitsConsumed, accounts, left, endpoint } = simulated;
  // Without sweeps, nothing of the fee payer but the fee is at stake.
  const read = sweeps.length > 0 ? await readPayer(rpc, feePayer, endpoint) : undefined;
  const before = simulated.payerBefore ?? read ?? left;
  const most = read === undefined ? left : saturatingSubtract(read, toLamports(BASE_FEE_LAMPORTS));
  return {
    unitsConsumed,
    after: (address) => accounts.get(address)!.lamports,
    leftInAmm: new Map<string, Lamports>(
      ammVaults.map((each) => [each, readWrappedSol(accounts.get(each)) ?? toLamports(0)]),
    ),
    rent: rentIn(before, left),
    left,
    certainlyLeft: most < left ? most : left,
  };
}

/** Returns what the fee payer loses besides the base fee. */
function rentIn(before: Lamports, left: Lamports): Lamports {
  return saturatingSubtract(before, toLamports(left + BASE_FEE_LAMPORTS));
}

/** Reads the fee payer's lamports at another endpoint than the simulation's, if one works. */
async function readPayer(
  rpc: Rpc,
  feePayer: string,
  simulatedAt: Parameters<Rpc["getAccounts"]>[1],
): Promise<Lamports> {
  const [group] = await rpc.getAccounts([[feePayer]], simulatedAt);
  return group?.[0]?.lamports ?? toLamports(0);
}
