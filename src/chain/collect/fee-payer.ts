import { createPrivateKey, sign, type KeyObject } from "node:crypto";
import { getBase58Decoder } from "@solana/codecs-strings";
import type { Keypair } from "@solana/web3.js";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import { CollectError } from "../errors/collect-error.ts";
import type { FeeBudget } from "./fee-budget.ts";
import { toTransaction } from "../units/message.ts";
import { createSigningRules, type AllowedSweeps } from "../units/signing-rules.ts";

/** What a message costs besides the fee, and what it may do. */
interface Spending {
  /** The lamports that the fee payer may still spend after this message's fee and rent. */
  readonly spendable: bigint;
  /** The most rent that the message pays. */
  readonly rent: Lamports;
  /**
   * Per account: what the message moves to it, and the address blocks that may pay its part of the
   * cost.
   */
  readonly accounts: readonly { readonly moved: Lamports; readonly blocks: readonly string[] }[];
  readonly sweeps: AllowedSweeps["sweeps"];
}

/** An account's part of a transaction's cost. */
export interface AccountCost {
  /** What is reserved. */
  readonly cost: Lamports;
  /** The most rent that the message pays, unless a program takes more than in the simulation. */
  readonly signedRent: Lamports;
  /**
   * Stops reserving the fee payer's balance, and returns to the budget what was certainly not
   * spent; a negative amount charges more. Call once, when the transaction has an outcome or will
   * never be sent.
   */
  close(unspent: bigint): void;
}

/** What comes before an Ed25519 key's 32 bytes in PKCS #8. Source: RFC 8410, section 7. */
const PKCS8_ED25519 = Buffer.from("302e020100300506032b657004220420", "hex");

export type FeePayer = ReturnType<typeof createFeePayer>;

/**
 * Creates the only holder of the fee payer's key. The fee payer signs only messages that pass
 * {@link createSigningRules} and fit into the budget. Its balance must also cover the transactions
 * in flight.
 */
export function createFeePayer(needs: {
  keypair: Keypair;
  maxPriorityFeeLamports: Lamports;
  feeBudgetLamportsPerHour: Lamports;
  budget: FeeBudget;
}) {
  const { keypair, feeBudgetLamportsPerHour, budget } = needs;
  const address = keypair.publicKey.toBase58();
  const key = toPrivateKey(keypair);
  const assertSafeToSign = createSigningRules({ ...needs, feePayer: address });
  /** The fees and rents of the transactions in flight, in lamports. */
  let openCosts = 0n;

  /**
   * Returns the least lamports that the fee payer must hold at the end of a transaction with
   * sweeps. Other transactions may land before, but all replicas together spend at most the hourly
   * budget. Never 0: a transfer of 0 lamports succeeds even if a program has taken ownership of the
   * fee payer's account.
   */
  function guardOf(spendable: bigint): bigint {
    const least = spendable - feeBudgetLamportsPerHour;
    return least > 1n ? least : 1n;
  }

  return {
    guardOf,

    /**
     * Reserves the message's fee and rent in the budget, then signs the message; `refused` if the
     * budget refuses an account, with what `reserve` returns for each. Throws {@link CollectError}
     * `fee-payer-short`, or an Error if the message is not safe to sign.
     */
    async sign(message: Uint8Array, spending: Spending) {
      const { spendable, rent, sweeps, accounts } = spending;
      const fee = assertSafeToSign(message, { sweeps, guard: guardOf(spendable) });
      const count = BigInt(accounts.length);
      const perAccount = (lamports: Lamports) => toLamports((lamports + count - 1n) / count);
      const costs = { fee: perAccount(fee), rent: perAccount(rent) };
      const cost = toLamports(costs.fee + costs.rent);
      const total = cost * count;
      // No await between this check and the addition, so that concurrent collects cannot pass
      // together.
      if (spendable < openCosts) {
        const detail = "its balance does not cover this transaction besides those in flight";
        throw new CollectError({ kind: "fee-payer-short", detail });
      }
      openCosts += total;
      const results = await Promise.all(
        accounts.map(({ moved, blocks }) => budget.reserve({ ...costs, moved }, blocks)),
      );
      const reserved = results.filter((each) => typeof each === "function");
      if (reserved.length < accounts.length) {
        openCosts -= total;
        for (const release of reserved) release(cost);
        const errors = results.map((each) => (typeof each === "function" ? undefined : each));
        return { kind: "refused" as const, errors };
      }
      const signature = sign(null, message, key);
      return {
        kind: "signed" as const,
        base64: toTransaction(message, address, signature),
        signature: getBase58Decoder().decode(signature),
        /** The most that the transaction can cost besides rent, whether it succeeds or fails. */
        fee,
        /** In the order of the accounts. */
        costs: reserved.map((each): AccountCost => ({
          cost,
          signedRent: rent,
          close(unspent) {
            openCosts -= cost;
            if (unspent !== 0n) each(toLamports(unspent));
          },
        })),
      };
    },
  };
}

/** Converts the key for node:crypto, which signs about twenty times as fast as web3.js. */
function toPrivateKey({ secretKey }: Keypair): KeyObject {
  const pkcs8 = Buffer.concat([PKCS8_ED25519, secretKey.subarray(0, 32)]);
  return createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
}
