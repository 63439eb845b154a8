import {
  ComputeBudgetProgram,
  PublicKey,
  TransactionMessage,
  VersionedTransaction,
  type Message,
} from "@solana/web3.js";
import type { AccountAddresses } from "../addresses.ts";
import type { Lamports } from "../lamports.ts";
import type { Launchpad } from "../launchpad/instructions.ts";
import { choosePrice } from "./priority-fee.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { isTooLittleToArrive, toFailure } from "./transaction-error.ts";
import type { Vaults } from "../balances.ts";

/** What a collect's transaction is made for: the units it may use and their price, and whether it asks the AMM. */
interface Terms {
  readonly unitLimit: number;
  /** In micro-lamports a compute unit. */
  readonly price: bigint;
  readonly withAmm: boolean;
}

/** What a rehearsal has shown: the terms, and what the fee payer would have left above its rent-exempt minimum. */
interface Rehearsal {
  readonly terms: Terms;
  readonly spendable: bigint | undefined;
}

/** Far above what a collect uses; only the simulation runs with it. */
const SIMULATION_UNIT_LIMIT = 400_000;
const UNIT_LIMIT_MARGIN = 1.2;
/** A blockhash for simulations, which replace it. */
const NO_BLOCKHASH = PublicKey.default.toBase58();

export type Rehearsals = ReturnType<typeof createRehearsals>;

/** Finds out by simulation what a collect would do, and composes its transaction, which `payer` pays for. */
export function createRehearsals(needs: {
  rpc: Rpc;
  vaults: Vaults;
  launchpad: Launchpad;
  payer: PublicKey;
  minLamports: Lamports;
  maxPriorityFee: Lamports;
}) {
  const { rpc, vaults, launchpad, payer, minLamports, maxPriorityFee } = needs;

  /**
   * Reads and simulates what a collect would do; "nothing" when it would not move enough.
   *
   * @throws {ContractError} INSUFFICIENT_FUNDS, COLLECT_FAILED
   */
  async function rehearse(account: AccountAddresses): Promise<Rehearsal | "nothing"> {
    const { collectable, inAmm, inCreatorVault } = await vaults.getFees(account);
    if (collectable < minLamports) return "nothing";

    const withAmm = inAmm > 0n;
    const rehearsal = compose(account, NO_BLOCKHASH, {
      unitLimit: SIMULATION_UNIT_LIMIT,
      price: 0n,
      withAmm,
    });
    const base64 = Buffer.from(new VersionedTransaction(rehearsal).serialize()).toString("base64");
    const { err, unitsConsumed, balances, logs } = await rpc.simulateTransaction(base64, [
      account.creatorVault,
      payer.toBase58(),
    ]);
    if (err !== null) {
      if (isTooLittleToArrive(err)) return "nothing";
      throw toFailure(err, `simulated: ${logs.join(" | ")}`);
    }
    // Told by the vaults, because the address may lose a withdrawal in the same moment.
    const [left, funds] = balances ?? [];
    if (left !== undefined && inCreatorVault + inAmm - left < minLamports) return "nothing";

    const unitLimit = Math.ceil((unitsConsumed || SIMULATION_UNIT_LIMIT) * UNIT_LIMIT_MARGIN);
    const written = [account.address, account.creatorVault, ...(withAmm ? [account.ammVault] : [])];
    const price = await choosePrice(rpc, written, unitLimit, maxPriorityFee);
    const spendable = funds === undefined ? undefined : funds - (await vaults.getRentMinimum());
    return { terms: { unitLimit, withAmm, price }, spendable };
  }

  /** A collect's transaction, not signed. */
  function compose(
    account: AccountAddresses,
    blockhash: string,
    { unitLimit, price, withAmm }: Terms,
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

  return { rehearse, compose };
}
