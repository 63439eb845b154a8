import {
  ComputeBudgetProgram,
  PublicKey,
  TransactionMessage,
  VersionedTransaction,
  type Message,
} from "@solana/web3.js";
import type { Logger } from "../../observability/log.ts";
import type { AccountAddresses } from "../addresses.ts";
import type { Balances, UncollectedFees } from "../balances.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../lamports.ts";
import type { Launchpad } from "../launchpad/instructions.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { isFeePayerShort, isReceiverBelowRent } from "../rpc/transaction-error.ts";
import { CollectError } from "../collect-error.ts";
import { choosePrice, priorityFee, type PricePolicy } from "../priority-fee.ts";

/** What varies between the transactions of collects, besides the account and the blockhash. */
interface TransactionTerms {
  readonly unitLimit: number;
  /** In micro-lamports per compute unit. */
  readonly price: bigint;
  readonly withAmm: boolean;
}

interface Simulation {
  readonly terms: TransactionTerms;
  /** The fee payer's lamports above its rent-exempt minimum, after all fees; undefined when unknown. */
  readonly spendable: bigint | undefined;
  /** The lamports that the vaults lose. */
  readonly moved: Lamports;
  /** The lamports at the address that its owner cannot withdraw. */
  readonly reserved: Lamports;
}

/** Far above what a collect uses. Also the basis of the real limit when the node does not report the used units. */
const SIMULATION_UNIT_LIMIT = 400_000;
const UNIT_LIMIT_MARGIN = 1.2;
/**
 * The lowest limits. An instruction uses less when its vault is empty, the AMM's almost none: the simulation may see
 * it empty, and fees may arrive before the transaction lands. On the sandbox a collect uses about 4,600 units, the
 * AMM's part 28,000 more.
 */
const MIN_UNIT_LIMIT = 10_000;
const MIN_UNIT_LIMIT_WITH_AMM = 60_000;
/** A placeholder: the node replaces the blockhash of a simulation. */
const NO_BLOCKHASH = PublicKey.default.toBase58();

export type Simulator = ReturnType<typeof createSimulator>;

/** Simulates collects and composes their transactions, whose fees `payer` pays. */
export function createSimulator(
  needs: PricePolicy & {
    rpc: Rpc;
    balances: Balances;
    launchpad: Launchpad;
    payer: PublicKey;
    minLamports: Lamports;
    log: Logger;
  },
) {
  const { rpc, balances, launchpad, payer, minLamports, log } = needs;

  /**
   * Simulates a collect; undefined when it would move less than `minLamports`, or leave the address below its
   * rent-exempt minimum. Leaves the AMM's vault out if the simulation fails with it, and the creator vault alone has
   * enough. Throws {@link CollectError} `fee-payer-short` or `simulation-failed`.
   */
  async function simulate(account: AccountAddresses): Promise<Simulation | undefined> {
    const fees = await balances.getUncollectedFees(account);
    if (fees.collectable < minLamports) return undefined;
    const withAmm = fees.inAmm > 0n;
    try {
      return await simulateWith(account, fees, withAmm);
    } catch (error) {
      const isFailed = error instanceof CollectError && error.failure.kind === "simulation-failed";
      if (!isFailed || !withAmm) throw error;
      const inCurve = saturatingSubtract(fees.inCreatorVault, await balances.getRentMinimum());
      if (inCurve < minLamports) throw error;
      const { address } = account;
      log.warn(
        { address, err: error },
        "a collect leaves out the AMM's fees, because its simulation fails with them: check LAUNCHPAD_AMM_PROGRAM_ID",
      );
      return simulateWith(account, fees, false);
    }
  }

  async function simulateWith(
    account: AccountAddresses,
    { inCreatorVault, inAmm, reserved }: UncollectedFees,
    withAmm: boolean,
  ): Promise<Simulation | undefined> {
    const message = compose(account, NO_BLOCKHASH, {
      unitLimit: SIMULATION_UNIT_LIMIT,
      price: 0n,
      withAmm,
    });
    const base64 = Buffer.from(new VersionedTransaction(message).serialize()).toString("base64");
    const simulated = await rpc.simulateTransaction(base64, [account.creatorVault, payer.toBase58()]);
    const { err, unitsConsumed, logs } = simulated;
    if (err !== null) {
      if (isReceiverBelowRent(err)) return undefined;
      if (isFeePayerShort(err)) {
        throw new CollectError({
          kind: "fee-payer-short",
          detail: `the simulation failed: ${JSON.stringify(err)}`,
        });
      }
      throw new CollectError({ kind: "simulation-failed", err, logs });
    }
    const [vaultAfter, feePayerAfter] = simulated.balances ?? [];
    // Compare what the vaults lose, not what the address gains: its owner may withdraw at any moment.
    const inVaults = inCreatorVault + (withAmm ? inAmm : 0n);
    const rentMinimum = await balances.getRentMinimum();
    const moved = toLamports(inVaults - (vaultAfter ?? rentMinimum));
    if (moved < minLamports) return undefined;

    const units = Math.ceil((unitsConsumed || SIMULATION_UNIT_LIMIT) * UNIT_LIMIT_MARGIN);
    const unitLimit = Math.max(units, withAmm ? MIN_UNIT_LIMIT_WITH_AMM : MIN_UNIT_LIMIT);
    const writable = [account.address, account.creatorVault, ...(withAmm ? [account.ammVault] : [])];
    const price = await choosePrice(rpc, writable, unitLimit, needs);
    // The simulation pays the base fee only: the priority fee depends on the units that it measures.
    const fee = priorityFee(price, unitLimit);
    const spendable = feePayerAfter === undefined ? undefined : feePayerAfter - fee - rentMinimum;
    return { terms: { unitLimit, withAmm, price }, spendable, moved, reserved };
  }

  /** Composes a collect's unsigned message. */
  function compose(
    account: AccountAddresses,
    blockhash: string,
    { unitLimit, price, withAmm }: TransactionTerms,
  ): Message {
    return new TransactionMessage({
      payerKey: payer,
      recentBlockhash: blockhash,
      instructions: [
        ComputeBudgetProgram.setComputeUnitLimit({ units: unitLimit }),
        ...(price > 0n ? [ComputeBudgetProgram.setComputeUnitPrice({ microLamports: price })] : []),
        ...(withAmm ? [launchpad.transferCreatorFeesToPump(account)] : []),
        launchpad.collectCreatorFee(account),
      ],
    }).compileToLegacyMessage();
  }

  return { simulate, compose };
}
