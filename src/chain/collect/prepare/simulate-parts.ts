import { VersionedTransaction, type PublicKey } from "@solana/web3.js";
import { CollectError } from "../../collect-error.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../../lamports.ts";
import { BASE_FEE_LAMPORTS, choosePrice, priorityFee, type PricePolicy } from "../../priority-fee.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import { isFeePayerShort, type TransactionError } from "../../rpc/transaction-error.ts";
import type { CollectPart, Composer, TransactionTerms } from "../sign/message.ts";

/** What a simulated transaction did. */
export interface Simulated {
  readonly err: TransactionError | null;
  readonly logs: readonly string[];
  readonly unitsConsumed: number | undefined;
  /** The lamports of each part's creator vault afterwards; undefined when unknown. */
  readonly vaultsAfter: readonly Lamports[] | undefined;
  readonly feePayerAfter: Lamports | undefined;
  /** What the fee payer lost besides the base fee; undefined when unknown. */
  readonly rent: Lamports | undefined;
}

/** Far above what a collect and a sweep use. Also the basis of the real limit when the node does not report the used units. */
const SIMULATION_UNIT_LIMIT = 400_000;
const SIMULATION_UNIT_LIMIT_PER_SWEEP = 150_000;
/** The chain's limit for a transaction. */
const MAX_UNIT_LIMIT = 1_400_000;
const UNIT_LIMIT_MARGIN = 1.2;
/**
 * The lowest limits of a part. An instruction uses less when its vault is empty, the AMM's almost none: the
 * simulation may see it empty, and fees may arrive before the transaction lands. On the sandbox a collect
 * uses 5,000 to 12,000 units, depending on the addresses, and the AMM's part about 25,000 more.
 */
const MIN_UNIT_LIMIT = 10_000;
const MIN_UNIT_LIMIT_WITH_AMM = 60_000;

/** The terms of simulated transactions. */
export const SIMULATION_TERMS: TransactionTerms = { unitLimit: SIMULATION_UNIT_LIMIT, price: 0n, guard: 1n };

export type PartsSimulator = ReturnType<typeof createPartsSimulator>;

/** Simulates transactions of one or several accounts, and chooses their terms. */
export function createPartsSimulator(
  needs: PricePolicy & { rpc: Rpc; composer: Composer; payer: PublicKey },
) {
  const { rpc, composer, payer } = needs;
  return {
    async simulate(parts: readonly CollectPart[]): Promise<Simulated> {
      const sweeps = parts.flatMap((part) => part.sweeps);
      const unitLimit = SIMULATION_UNIT_LIMIT + sweeps.length * SIMULATION_UNIT_LIMIT_PER_SWEEP;
      const message = composer.compose(parts, {
        ...SIMULATION_TERMS,
        unitLimit: Math.min(unitLimit, MAX_UNIT_LIMIT),
      });
      const base64 = Buffer.from(new VersionedTransaction(message).serialize()).toString("base64");
      const vaults = parts.map(({ account }) => account.creatorVault);
      const [simulated, [before] = []] = await Promise.all([
        rpc.simulateTransaction(base64, [...vaults, payer.toBase58()]),
        // Without sweeps nothing uses the fee payer's account.
        sweeps.length > 0 ? rpc.getAccounts([[payer.toBase58()]]).then((groups) => groups[0]) : [],
      ]);
      const { err, logs, unitsConsumed, balances } = simulated;
      const feePayerAfter = balances?.[vaults.length];
      const rent =
        before && feePayerAfter !== undefined
          ? saturatingSubtract(before.lamports, toLamports(feePayerAfter + BASE_FEE_LAMPORTS))
          : undefined;
      return {
        err,
        logs,
        unitsConsumed,
        vaultsAfter: balances?.slice(0, vaults.length),
        feePayerAfter,
        rent,
      };
    },

    unitLimitOf(parts: readonly CollectPart[], { unitsConsumed }: Simulated): number {
      const units = Math.ceil((unitsConsumed || SIMULATION_UNIT_LIMIT) * UNIT_LIMIT_MARGIN);
      const least = parts.reduce(
        (sum, { withAmm }) => sum + (withAmm ? MIN_UNIT_LIMIT_WITH_AMM : MIN_UNIT_LIMIT),
        0,
      );
      return Math.min(Math.max(units, least), MAX_UNIT_LIMIT);
    },

    /** The fee payer's lamports above `rentMinimum`, after all fees and rents; undefined when unknown. */
    spendableAfter(
      { feePayerAfter }: Simulated,
      { unitLimit, price }: Pick<TransactionTerms, "unitLimit" | "price">,
      rentMinimum: Lamports,
    ): bigint | undefined {
      if (feePayerAfter === undefined) return undefined;
      // The simulation pays the base fee only: the priority fee depends on the units that it measures.
      return feePayerAfter - priorityFee(price, unitLimit) - rentMinimum;
    },

    /** The price per compute unit for a transaction with these parts. Never rejects. */
    priceOf: (parts: readonly CollectPart[], unitLimit: number): Promise<bigint> =>
      choosePrice(rpc, parts.flatMap(writableOf), unitLimit, needs),
  };
}

/** Throws {@link CollectError} `fee-payer-short` if that is why a simulation failed. */
export function assertFeePayerPays(err: TransactionError): void {
  if (!isFeePayerShort(err)) return;
  const detail = `the simulation failed: ${JSON.stringify(err)}`;
  throw new CollectError({ kind: "fee-payer-short", detail });
}

function writableOf({ account, withAmm, sweeps }: CollectPart): string[] {
  const places = sweeps.map(({ coin, stage }) => (stage === "CURVE" ? coin.curve : coin.pool));
  return [account.address, account.creatorVault, ...(withAmm ? [account.ammVault] : []), ...places];
}
