import type { Logger } from "../../observability/log.ts";
import type { Balances } from "../balances/balances.ts";
import { blockKey, type Failures } from "../balances/failures.ts";
import { COLLECT_FAILURES, CollectError, type CollectFailure } from "../errors/collect-error.ts";
import type { AccountAddresses } from "../launchpad/account-addresses.ts";
import { coinAddressesOf } from "../launchpad/coin-addresses.ts";
import { toDate } from "../primitives/block-time.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
import { UNKNOWN_AFTER_MS, type TransactionOutcome } from "../rpc/outcome.ts";
import type { LandedTransaction } from "../rpc/read-transaction.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import { msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { isFeePayerShort } from "../errors/transaction-error.ts";
import type { TransactionError } from "../rpc/rpc-results.ts";
import type { Floors } from "../balances/floors.ts";
import type { Composer } from "../units/composer.ts";
import { accountKeysOf } from "../units/message.ts";
import { creatorOf } from "../units/part.ts";
import { failureKey, type MovedCoin } from "../units/units.ts";
import type { Claim, Claims, LastCollect, StoredTransaction } from "./claims.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import { findDifferences } from "./platform-differences.ts";
import type { Signed } from "./prepare-and-sign.ts";
import { accountsOf, type Turn } from "./turns.ts";

/** What a landed transaction moved to an account. */
export type Collected = Omit<LastCollect, "at">;

/** What a transaction's outcome means for the requests that wait for its unit. */
export type TransactionEnd =
  | {
      readonly kind: "landed";
      readonly slot: number;
      /** When this flight signed it; undefined if another replica, or an earlier flight, did. */
      readonly signedAt: MonotonicTime | undefined;
      readonly moved: readonly MovedCoin[];
      /**
       * Undefined if the transaction moved nothing to the account. Throws {@link CollectError}
       * `landed-unreadable`.
       */
      readonly collectedBy: (account: AccountAddresses) => Promise<Collected | undefined>;
    }
  | {
      readonly kind: "failed";
      readonly error: unknown;
      readonly isFollowed: boolean;
    }
  /** It failed on the chain, and any of its accounts may be the reason. */
  | { readonly kind: "again" };

/** A transaction in flight, and what its end depends on. */
export interface SentTransaction {
  readonly key: string;
  readonly account: AccountAddresses;
  readonly claim: Pick<Claim, "settle">;
  readonly transaction: StoredTransaction;
  /** If this flight signed the transaction. */
  readonly signed?: Signed;
  readonly turn?: Turn;
}

const DISPUTED =
  "two chain endpoints contradict each other about a collect's transaction: look it up by its signature, and replace the endpoint that is wrong";

export type SettleTransaction = ReturnType<typeof createSettleTransaction>;

/**
 * Settles the claim of a transaction whose outcome is known, counts what it cost, and reads what it
 * moved. The outcome decides the unit's next transaction:
 *
 * | Outcome                              | What is not tried again for a while (failures.ts)     |
 * | ------------------------------------ | ----------------------------------------------------- |
 * | expired or unknown                   | its coins, or the distribution                        |
 * | unknown, as endpoints contradict     | the unit, until the blockhash has expired             |
 * | failed; or moved nothing, fees wait  | the coins at fault, all if none is known; what else   |
 * |                                      | the block that named them names; a unit without coins |
 * | failed, with several accounts        | nothing: each account's next transaction is its own   |
 * | failed, as the fee payer is short    | nothing                                               |
 * | failed, signed by another replica    | nothing: the signer tells                             |
 * | moved nothing, none wait             | nothing: somebody else collected first                |
 * | moved something                      | nothing, and earlier waits of its coins end           |
 */
export function createSettleTransaction(needs: {
  balances: Pick<Balances, "getUnwithdrawable">;
  claims: Pick<Claims, "keepCollect">;
  failures: Pick<Failures, "succeeded" | "failedOnChain" | "hold">;
  floors: Pick<Floors, "announce">;
  rpc: Pick<Rpc, "readLanded">;
  composer: Pick<Composer, "blame">;
  feePayer: string;
  minCollectLamports: Lamports;
  metrics: CollectMetrics;
  /** Limits how long the amounts may be read. */
  collectTimeoutMs: number;
  log: Logger;
}) {
  const { balances, claims, failures, floors, minCollectLamports } = needs;
  const { rpc, feePayer, metrics, collectTimeoutMs } = needs;

  /** Settles the claim of a transaction that has an outcome. */
  async function settleTransaction(
    inFlight: SentTransaction,
    outcome: TransactionOutcome,
  ): Promise<TransactionEnd> {
    const { key, account, claim, transaction, signed, turn } = inFlight;
    const { log } = turn?.leader.request ?? needs;
    const { signature, sweptMints: mints = [] } = transaction;
    const { address } = account;
    const accounts = accountsOf(turn, account);
    const fail = (failure: CollectFailure): TransactionEnd => ({
      kind: "failed",
      error: new CollectError(failure),
      isFollowed: !signed,
    });

    if (outcome.kind !== "landed" || outcome.err !== null)
      // No account need follow it any more.
      for (const each of accounts) claims.keepCollect(each.address, signature, undefined);
    if (outcome.kind !== "landed") {
      signed?.close(0n);
      const hosts = outcome.kind === "unknown" ? outcome.hosts : [];
      const isDisputed = hosts.length > 0;
      log.warn(
        { signature, address, hosts },
        isDisputed ? DISPUTED : COLLECT_FAILURES[outcome.kind].hint,
      );
      // It may still land until its blockhash has expired.
      const sentMs = signed ? msSince(signed.signedAt) : 0;
      if (isDisputed) failures.hold([key], UNKNOWN_AFTER_MS - sentMs);
      else failures.hold(key === address ? mints : [key]);
      claim.settle();
      return fail({ kind: outcome.kind, signature });
    }

    const { slot, err } = outcome;
    const curves = mints.map((mint) => coinAddressesOf(mint).curve);
    for (const changedAddress of [...accounts.map((each) => each.address), ...curves])
      floors.announce(changedAddress, slot);
    const accountKeys = accountKeysOf(transaction.base64) ?? [];
    const landedTransaction =
      outcome.transaction ??
      (await rpc.readLanded(signature, accountKeys, collectTimeoutMs).catch(() => undefined));
    if (signed) countCosts(signed, landedTransaction, log);

    if (err !== null) {
      log.warn({ signature, address, error: err }, "a collect's transaction failed");
      claim.settle(slot);
      if (isFeePayerShort(err)) {
        const detail = `transaction ${signature} failed on the chain: ${JSON.stringify(err)}`;
        return fail({ kind: "fee-payer-short", detail, signature });
      }
      if (transaction.isShared) return { kind: "again" };
      // Who follows another replica's transaction leaves this to the signer.
      if (signed) failures.failedOnChain(keysAtFault(inFlight, signed, err));
      return fail({ kind: "failed-on-chain", signature, err });
    }

    const at = toDate(landedTransaction?.blockTime) ?? (signed && new Date());
    const results = new Map<string, Promise<Collected | undefined>>();
    /** Reads and keeps each account's part once. */
    function collectedBy(each: AccountAddresses): Promise<Collected | undefined> {
      const result = results.get(each.address) ?? keepCollected(each);
      results.set(each.address, result);
      return result;
    }
    async function keepCollected(account: AccountAddresses): Promise<Collected | undefined> {
      const { address } = account;
      const collect = await readCollected(inFlight, landedTransaction, account);
      if (collect) {
        log.info({ signature, address, lamports: String(collect.collected) }, "collected");
        if (signed) metrics.collected(collect.collected);
      }
      claims.keepCollect(address, signature, collect && at && { ...collect, at });
      return collect;
    }
    const all = await Promise.allSettled(accounts.map(collectedBy));
    const isVain = all.every((each) => each.status === "fulfilled" && !each.value);
    claim.settle(slot);
    if (signed && isVain && isRefused(signed, landedTransaction)) {
      failures.failedOnChain(keysAtFault(inFlight, signed));
      return fail({ kind: "nothing-received", signature });
    }
    if (!isVain) failures.succeeded([key, ...mints]);
    if (signed && !isVain) metrics.ended("collected");
    const moved = signed
      ? signed.part.sweeps.map(({ coin: { mint }, stage }) => ({ mint, stage }))
      : mints.map((mint) => ({ mint }));
    return { kind: "landed", slot, signedAt: signed?.signedAt, moved, collectedBy };
  }

  /**
   * Whether a transaction that moved nothing has left what is worth a collect in the unit's vault:
   * then a receiver could not take its part. An empty vault means that somebody else collected
   * first.
   */
  function isRefused({ part }: Signed, landedTransaction: LandedTransaction | undefined): boolean {
    const { after } = landedTransaction?.balances.get(creatorOf(part).creatorVault) ?? {};
    return after !== undefined && after >= part.vaults.rentMinimum + minCollectLamports;
  }

  /**
   * Counts a landed transaction's fee and rent in the metrics, corrects the rent in the budget, and
   * says what the launch platform did otherwise.
   */
  function countCosts(
    { fee, part, signedRent, transaction: { isShared, signature }, close }: Signed,
    landedTransaction: LandedTransaction | undefined,
    log: Logger,
  ): void {
    const { balances, fee: paidFee = fee } = landedTransaction ?? {};
    // A failed transaction also costs its fee, unless the fee payer could not pay.
    metrics.paid(paidFee < fee ? paidFee : fee);
    const payer = balances?.get(feePayer);
    if (payer) metrics.setBalance(payer.after);
    // Accounts share only transactions without rent.
    if (isShared || !balances || !payer) {
      close(0n);
      return;
    }
    const rent = saturatingSubtract(payer.before, toLamports(payer.after + fee));
    // A program may have taken more than it did in the simulation.
    close(signedRent - rent);
    metrics.paid(rent);
    const differences = findDifferences(part, balances, rent - signedRent);
    if (differences.length === 0) return;
    metrics.differed();
    log.warn(
      { signature, differences },
      "a collect moved something else than the launch platform's tested programs would: see LaunchpadDiffers in docs/operating.md",
    );
  }

  /** Returns what a landed transaction moved to an account, if anything. */
  async function readCollected(
    { transaction, turn }: SentTransaction,
    landedTransaction: LandedTransaction | undefined,
    account: AccountAddresses,
  ): Promise<Collected | undefined> {
    const { signature } = transaction;
    const { address } = account;
    if (!landedTransaction) throw new CollectError({ kind: "landed-unreadable", signature });
    // A request may name a coin in which its account has no share.
    const isPaid = accountKeysOf(transaction.base64)?.includes(address) ?? true;
    if (!isPaid) return undefined;
    const balance = landedTransaction.balances.get(address);
    // Too large to be read exactly.
    if (!balance) throw new CollectError({ kind: "landed-unreadable", signature });
    const { before, after } = balance;
    // Anyone may collect directly on the chain, and may have moved the fees first.
    if (after <= before) return undefined;
    const member = turn?.members.find(({ request }) => request.account.address === address);
    const unwithdrawable =
      member?.read.fees.unwithdrawable ??
      (await balances.getUnwithdrawable(account).catch((cause: unknown) => {
        throw new CollectError({ kind: "landed-unreadable", signature }, cause);
      }));
    return {
      collected: toLamports(after - before),
      newBalance: saturatingSubtract(after, unwithdrawable),
      signature,
    };
  }

  /** What is not tried again for a while: the coin at fault, or all if `err` names none. */
  function keysAtFault(
    { key, account: { address }, turn }: SentTransaction,
    { part }: Signed,
    err?: TransactionError,
  ): string[] {
    if (part.sweeps.length === 0) return [key];
    const failedSweep = err === undefined ? undefined : needs.composer.blame([part], err)?.sweep;
    const failedSweeps = failedSweep ? [failedSweep] : part.sweeps;
    const block = turn?.leader.request.caller.visitorBlock;
    const ofBlock = block === undefined ? [] : [blockKey(address, block)];
    return [...failedSweeps.map(failureKey), ...ofBlock];
  }

  return settleTransaction;
}
