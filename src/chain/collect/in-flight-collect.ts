import type { Logger } from "../../observability/log.ts";
import type { Balances } from "../balances.ts";
import type { Floors } from "../slots/stale-balances.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import type { WalletWithCoins } from "../wallets.ts";
import type { Claim, Claims, StoredTransaction } from "./claims.ts";
import { COLLECT_FAILURES, CollectError } from "../collect-error.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import {
  createConfirmation,
  hasAccount,
  type ConfirmationWaits,
  type TransactionOutcome,
} from "./send-and-confirm.ts";
import { createSuccessRule } from "./success.ts";
import type { CoinBackoff } from "./coin-backoff.ts";
import type { Payers } from "./fee-budget.ts";
import type { FeePayer } from "./fee-payer.ts";
import type { CoinFindings } from "../coin-findings.ts";
import { createLandedOutcome, type CollectOutcome, type EarlierTransaction } from "./landed-outcome.ts";
import type { SignedCollect } from "./prepare/plan.ts";
import { createPrepareCollect } from "./prepare/prepare-collect.ts";
import type { Prospects } from "./prepare/prospect.ts";
import type { Packer } from "./prepare/packer.ts";
import type { VersionChoice } from "./message/message-version.ts";

/** A collect, from its first read until the outcome of its transaction is known. No caller can cancel it. */
export interface InFlightCollect {
  /** Rejects with {@link CollectError}, {@link RpcError}, or an error that marks a bug. */
  readonly outcome: Promise<CollectOutcome>;
  /** The mints of the coins that it has left out so far, because they fail or cost too much. */
  readonly leftOut: ReadonlySet<string>;
  /** The signature of the transaction that it sends, or waits for. */
  signature(): string | undefined;
  /** Call when a caller joins it. */
  asked(): void;
  /** Once it has collected: whether that is a success for a caller who asked at this `performance.now()` time. */
  isSuccessFor(askedAt: number): Promise<boolean>;
  /** The error for a caller who times out now. */
  timeoutError(): CollectError;
}

/** The transaction that a collect sends, or waits for, which decides the error for a caller who times out. */
interface TransactionInFlight {
  /** Undefined while another collect prepares it. */
  readonly signature: () => string | undefined;
  /** Whether it is confirmed, and its amounts are being read. */
  readonly hasLanded: boolean;
}

/** The services that collects use. Only `feePayer` holds the key. */
export interface CollectNeeds extends ConfirmationWaits {
  rpc: Rpc;
  balances: Balances;
  prospects: Prospects;
  packer: Packer;
  versions: VersionChoice;
  feePayer: FeePayer;
  claims: Claims;
  backoff: CoinBackoff;
  findings: Pick<CoinFindings, "found">;
  floors: Floors;
  /** Tells the other replicas in which slot an account's transaction landed. */
  announceLanded: (address: string, slot: number) => void;
  metrics: CollectMetrics;
  /**
   * How long a caller waits, from its request; how long a collect may take to sign, from its own start; and how
   * long the amounts of a landed transaction may take to read.
   */
  collectTimeoutMs: number;
  log: Logger;
}

/** One endpoint alone may lie about an expired transaction, to raise spending. */
const ENDPOINTS_FOR_REFUND = 2;

/**
 * Returns a function that starts a collect of an account and its coins, at the expense of the first of the payers whose
 * part of the fee budget is enough. `block`: the address block that named the coins. `log` is that of the request that
 * starts it. Start at most one per account at a time.
 */
export function createStartCollect(needs: CollectNeeds) {
  const { feePayer, claims, backoff, floors, announceLanded, collectTimeoutMs } = needs;
  const { confirm, findLanded, readLanded } = createConfirmation(needs);
  const prepare = createPrepareCollect(needs);
  const feePayerAddress = feePayer.publicKey.toBase58();

  return (
    wallet: WalletWithCoins,
    payers: Payers,
    block: string | undefined,
    log = needs.log,
  ): InFlightCollect => {
    const { account, coins } = wallet;
    const { address } = account;
    const landedOutcome = createLandedOutcome({ ...needs, readLanded, feePayer: feePayerAddress, log });
    const startedAt = performance.now();
    const endsAt = startedAt + collectTimeoutMs;
    const success = createSuccessRule(needs.rpc);
    /** Whether a transaction may be in flight that was signed before a caller who asks now. */
    let mayBeInFlight = false;
    const leftOut = new Set<string>();
    /** Undefined while none is. One that is being stored may turn out not to be sent. */
    let inFlight: TransactionInFlight | undefined;
    /** The account's last collect. */
    let lastCollect: Claim["lastCollect"] = () => undefined;
    /** Set after a transaction of several accounts has failed. */
    let isAlone = false;

    /** Another transaction may be in flight, which this collect has not seen yet. */
    function wait(): void {
      mayBeInFlight = true;
      success.readSlot();
    }

    /**
     * Follows the transaction of a claim until it has an outcome. `isOld`: it had landed when this collect found it.
     */
    async function follow(
      claim: Claim,
      transaction: StoredTransaction,
      find?: (transaction: StoredTransaction) => Promise<Awaited<ReturnType<typeof findLanded>> | undefined>,
    ): Promise<{ readonly outcome: TransactionOutcome; readonly isOld: boolean }> {
      mayBeInFlight = true;
      const askedAt = performance.now();
      const found = await find?.(transaction);
      // Statuses are of the node's newest slot, in which the transaction may still land.
      if (found && !found.landed) success.add(askedAt, found.slot - 1);
      const outcome = found?.landed ?? (await land(claim, transaction));
      if (found?.landed) floors.require(address, found.landed.slot);
      success.landed(outcome.kind === "landed" ? outcome.slot : 0);
      return { outcome, isOld: found?.landed !== undefined };
    }

    async function run(): Promise<CollectOutcome> {
      /** The last transaction that this collect followed. */
      let earlier: EarlierTransaction | undefined;
      /** The last one of unknown outcome, if it may have paid the account. */
      let unknown: string | undefined;
      let hasMovedNothing = false;
      for (;;) {
        if (performance.now() > endsAt) throw new CollectError({ kind: "timed-out" });
        const claim = await claims.take(address, endsAt, wait);
        const takenAt = performance.now();
        lastCollect = claim.lastCollect;
        floors.require(address, claim.landedSlot);

        const { openTransaction } = claim;
        if (openTransaction) {
          const { outcome, isOld } = await follow(
            claim,
            openTransaction,
            claim.isEarlier ? findLanded : undefined,
          );
          if (outcome.kind === "unknown") unknown = openTransaction.signature;
          if (outcome.kind !== "landed") continue;
          const isCurrent = await success.isFor(startedAt);
          const isWhole = !claim.isEarlier && coins.length === 0 && isCurrent;
          if (!isOld && (outcome.err !== null || isWhole)) {
            const result = await landedOutcome.read(account, claim, openTransaction, outcome);
            if (result !== "failed-together") return result;
            collectAlone();
            continue;
          }
          // It may have landed before this collect began, or without these coins: collect what waits now.
          claim.settle({ slot: outcome.slot });
          earlier = { transaction: openTransaction, landed: outcome, isCurrent };
          inFlight = undefined;
          continue;
        }

        mayBeInFlight = false;
        const landedBefore = floors.landedSlotOf(address);
        const prepared = await prepare({
          ...{ wallet, claim, payers, block, leftOut, endsAt, isAlone },
          onWait(transaction) {
            wait();
            inFlight = { signature: () => transaction()?.signature, hasLanded: false };
          },
        }).catch((error: unknown) => {
          claim.settle();
          throw error;
        });
        if (prepared.kind !== "signed") claim.settle();
        if (prepared.kind === "other") {
          const transaction = prepared.claim.openTransaction!;
          const { outcome } = await follow(prepared.claim, transaction, (each) =>
            findLanded(each).catch(() => undefined),
          );
          inFlight = undefined;
          if (outcome.kind === "landed") {
            prepared.claim.settle({ slot: outcome.slot });
            if (outcome.err === null)
              earlier = { transaction, landed: outcome, isCurrent: await success.isFor(startedAt) };
          }
          if (outcome.kind === "unknown" && hasAccount(transaction, address)) unknown = transaction.signature;
          continue;
        }
        if (prepared.kind === "nothing") {
          // The transaction that this collect followed may have moved everything.
          if (unknown !== undefined && !earlier?.isCurrent)
            throw new CollectError({ kind: "unknown", signature: unknown });
          return earlier ? landedOutcome.readEarlier(account, claim, earlier, endsAt) : prepared;
        }
        const { signed, distributions } = prepared;
        const { transaction } = signed;
        const signedAt = performance.now();
        const held = [claim, ...distributions.values()];
        mayBeInFlight = true;
        if (!(await storeToSend(held, signed))) {
          signed.close({ refund: !transaction.isShared }); // Another of its accounts may send it.
          for (const each of held) each.settle();
          // What another replica signs, it signs after it took the claim from this collect.
          if (claim.isInRedis) success.add(takenAt, landedBefore);
          continue;
        }
        const outcome = await land(claim, transaction);
        signed.close({ refund: outcome.kind === "expired" && outcome.agreeing >= ENDPOINTS_FOR_REFUND });
        if (outcome.kind !== "landed") {
          backoff.expired([...distributions.keys()]);
          for (const each of held) each.settle();
          throw new CollectError({ kind: outcome.kind, signature: transaction.signature });
        }
        // Equal bytes, which have one signature, may have landed before.
        success.add(signedAt, outcome.slot === 0 ? -1 : landedBefore);
        success.landed(outcome.slot);
        // After a failure, the collects that wait must see that the coin backs off.
        const result = await landedOutcome
          .read(account, claim, transaction, outcome, { ...signed, block })
          .finally(() => {
            for (const each of distributions.values()) each.settle({ slot: outcome.slot });
          });
        if (result === "failed-together") collectAlone();
        else if (result.kind === "nothing" && coins.length > 0 && !hasMovedNothing) {
          // Someone else collected first. Fees may have arrived on the coins after they were read: read them again.
          hasMovedNothing = true;
          inFlight = undefined;
        } else return result;
      }
    }

    /**
     * Stores a signed transaction under all its claims. False if it must not be sent: another replica has taken one of
     * them.
     */
    async function storeToSend(held: readonly Claim[], signed: SignedCollect): Promise<boolean> {
      const areStored = await Promise.all(held.map((claim) => claim.store(signed.transaction)));
      if (await signed.isStoredForAll(!areStored.includes(false))) return true;
      // A replica that waits for a claim may have received the transaction, and sends it: then it is in flight.
      const areFree = await Promise.all(held.map(async (claim, i) => !areStored[i] || claim.withdraw()));
      return areFree.includes(false);
    }

    function collectAlone(): void {
      isAlone = true;
      inFlight = undefined;
    }

    /** Sends a stored transaction until it has landed or no longer can; if it did not land, settles the claim. */
    async function land(claim: Claim, transaction: StoredTransaction): Promise<TransactionOutcome> {
      const { signature } = transaction;
      inFlight = { signature: () => signature, hasLanded: false };
      const outcome = await confirm(transaction, { maybeSent: claim.openTransaction !== undefined });
      if (outcome.kind === "landed") {
        // Its coins too: all who share their fees see them.
        const swept = coins.filter(({ mint }) => transaction.sweptMints?.includes(mint));
        for (const changed of [address, ...swept.map(({ curve }) => curve)]) {
          floors.require(changed, outcome.slot);
          announceLanded(changed, outcome.slot);
        }
        inFlight = { signature: () => signature, hasLanded: true };
        return outcome;
      }
      claim.settle();
      if (outcome.kind === "expired") inFlight = undefined;
      log.warn({ signature, address }, COLLECT_FAILURES[outcome.kind].hint);
      return outcome;
    }

    const signature = () => inFlight?.signature();

    return {
      outcome: run().then((outcome) =>
        outcome.kind === "nothing" ? { ...outcome, lastCollect: lastCollect() } : outcome,
      ),
      leftOut,
      signature,
      asked() {
        if (mayBeInFlight) success.readSlot();
      },
      isSuccessFor: success.isFor,
      timeoutError() {
        const current = signature();
        return inFlight?.hasLanded && current !== undefined
          ? new CollectError({ kind: "landed-unreadable", signature: current })
          : new CollectError({ kind: "still-running", signature: current });
      },
    };
  };
}
