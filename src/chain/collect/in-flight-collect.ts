import type { Logger } from "../../observability/log.ts";
import type { Balances } from "../balances.ts";
import type { CoinFindings } from "../coin-findings.ts";
import { COLLECT_FAILURES, CollectError, mayHaveMoved } from "../collect-error.ts";
import { toLamports, type Lamports } from "../lamports.ts";
import type { Rpc } from "../rpc/rpc-client.ts";
import type { Floors } from "../slots/stale-balances.ts";
import { distributionsOf } from "../choose-sweeps.ts";
import type { WalletWithCoins } from "../wallets.ts";
import type { Claim, Claims, StoredTransaction } from "./claims.ts";
import type { CoinBackoff } from "./coin-backoff.ts";
import type { CollectMetrics } from "./collect-metrics.ts";
import { createReadOutcome, type CollectOutcome } from "./landed-outcome.ts";
import type { Draft, PendingCollect, ReadDrafts } from "./prepare/draft.ts";
import type { Planner } from "./prepare/planner.ts";
import {
  createConfirmation,
  hasAccount,
  type ConfirmationWaits,
  type TransactionOutcome,
} from "./send-and-confirm.ts";
import { createLandingProofs, type SeenTransaction } from "./success.ts";
import {
  addMs,
  LONG_AGO,
  monotonicNow,
  type MonotonicTime,
  msUntil,
} from "../../time/monotonic.ts";

/** The services that collects use. Only `plan` can sign. */
export interface CollectNeeds extends ConfirmationWaits {
  rpc: Rpc;
  balances: Balances;
  readDrafts: ReadDrafts;
  plan: Planner;
  feePayer: string;
  claims: Claims;
  backoff: CoinBackoff;
  findings: Pick<CoinFindings, "found">;
  floors: Floors;
  /** Tells the other replicas in which slot a transaction changed an account or a swept curve. */
  announceLanded: (address: string, slot: number) => void;
  metrics: CollectMetrics;
  /**
   * Limits how long a caller waits after its request, how long a collect may take until it signs,
   * and how long it may read a landed transaction's amounts.
   */
  collectTimeoutMs: number;
  log: Logger;
}

/**
 * A collect, from its first read until the outcome of its transaction is known. Callers cannot
 * cancel a collect.
 */
export type InFlightCollect = ReturnType<ReturnType<typeof createStartCollect>>;

/**
 * A single endpoint could falsely report a transaction as expired; a false refund lets the service
 * overspend.
 */
const ENDPOINTS_FOR_REFUND = 2;
/**
 * The part of its time that a collect waits for others to sign a distribution: strangers can keep
 * them busy.
 */
const DISTRIBUTION_WAIT = 1 / 3;

/**
 * How many transactions of a collect may move nothing, because someone else collects first: each
 * costs a fee.
 */
const MAX_MOVING_NOTHING = 5;

/**
 * Returns a function that starts a collect of an account and its coins. The account must have no
 * collect in flight. `payers`: the first with a large enough share of the budget pays. `minimum`:
 * if no transaction moves as much, none is simulated. `block`: the address block that requested the
 * coins.
 */
export function createStartCollect(needs: CollectNeeds) {
  const { rpc, readDrafts, plan, claims, backoff, floors, announceLanded, collectTimeoutMs } =
    needs;
  const { confirm, findLanded, readLanded } = createConfirmation(needs);
  const readOutcome = createReadOutcome({ ...needs, readLanded });

  return (
    wallet: WalletWithCoins,
    { payers, minimum }: Pick<PendingCollect, "payers" | "minimum">,
    block: string | undefined,
    log = needs.log,
  ) => {
    const { account, coins } = wallet;
    const { address } = account;
    const startedAt = monotonicNow();
    const endsAt = addMs(startedAt, collectTimeoutMs);
    const proofs = createLandingProofs(rpc);
    /** Whether a signed transaction may be in flight. */
    let mayBeInFlight = false;
    const leftOut = new Set<string>();
    /**
     * The transaction that this collect sends or waits for. Decides the error for a caller who
     * times out. `signature` returns undefined while another collect prepares the transaction.
     * `hasLanded`: the amounts are being read.
     */
    let inFlight:
      { readonly signature: () => string | undefined; readonly hasLanded: boolean } | undefined;
    let lastCollect: Claim["lastCollect"] = () => undefined;
    /**
     * Whether this account needs its own transaction, because it was in a failed transaction of
     * several accounts.
     */
    let isAlone = false;
    /** The transaction that produced this collect's outcome, if any. */
    let reported: SeenTransaction | undefined;
    /**
     * Another collect's transaction and outcome, if they are a result for this collect's first
     * caller.
     */
    let followed:
      { readonly outcome: CollectOutcome; readonly transaction: SeenTransaction } | undefined;
    /**
     * The signature of another collect's transaction whose outcome is unknown: it may have paid the
     * account.
     */
    let unknown: string | undefined;

    /**
     * Called while this collect waits for a claim: another collect's transaction may be in flight.
     */
    function wait(): void {
      mayBeInFlight = true;
      proofs.readSlot();
    }

    /**
     * Follows another collect's transaction to its outcome. `held`: the claim that stores the
     * transaction.
     */
    async function follow(
      claim: Claim,
      held: Claim,
      transaction: StoredTransaction,
    ): Promise<void> {
      mayBeInFlight = true;
      inFlight = { signature: () => transaction.signature, hasLanded: false };
      const isOwn = held === claim;
      if (held.isEarlier) proofs.readSlot();
      const found = held.isEarlier ? findLanded(transaction) : undefined;
      const landed = await found?.catch((error: unknown) => {
        if (isOwn)
          throw new CollectError(
            { kind: "still-running", signature: transaction.signature },
            error,
          );
      });
      if (landed)
        for (const changed of changedBy(transaction)) floors.require(changed, landed.slot);
      const outcome = landed ?? (await land(held, transaction));
      const seen = { hasAccount: isOwn || hasAccount(transaction, address), outcome };
      const result = await proofs.resultFor(startedAt, seen);
      if (result === "unknown") unknown = transaction.signature;
      if (outcome.kind !== "landed") return;
      const isRead = seen.hasAccount && (outcome.err === null || (isOwn && result === "landed"));
      if (!isOwn || !isRead) held.settle({ slot: outcome.slot });
      if (isRead) {
        // With `nothing`, only the account's `lastCollect` needs the amounts: one attempt to read
        // them is enough.
        const timeoutMs = result === "nothing" ? 0 : msUntil(endsAt);
        const read = await readOutcome(
          { account, claim, transaction, outcome, timeoutMs },
          log,
        ).catch((error: unknown) => {
          if (result !== "nothing") throw error;
        });
        if (read === "failed-together") isAlone = true;
        else if (read?.kind === "collected" && result === "landed")
          followed = { outcome: read, transaction: seen };
      }
      inFlight = undefined;
    }

    /**
     * Takes a draft's distribution claims one by one. If one has another collect's transaction,
     * returns that claim.
     */
    async function claimDistributions(
      { wanted }: Draft,
      held: Map<string, Claim>,
      signBy: MonotonicTime,
    ) {
      const coins = distributionsOf(wanted.sweeps).map(({ coin }) => coin);
      // All collects take the claims in one order, so that they rarely keep each other waiting.
      for (const { mint, curve, sharingConfig } of coins.toSorted((a, b) =>
        a.mint < b.mint ? -1 : 1,
      )) {
        const taken = await claims.take(sharingConfig.address, signBy, (transaction) => {
          // Other collects may need the claims taken so far.
          settleAll(held);
          wait();
          inFlight = { signature: () => transaction()?.signature, hasLanded: false };
        });
        if (taken.openTransaction) return taken;
        floors.require(curve, taken.landedSlot);
        held.set(mint, taken);
      }
      return undefined;
    }

    /**
     * Reads what the account can collect, then simulates, signs and stores a transaction. `held`
     * receives the claims of the distributions. Throws the planner's errors, and {@link
     * CollectError} `backing-off` or `coins-backing-off`.
     */
    async function prepare(claim: Claim, held: Map<string, Claim>, onSigned: () => void) {
      const waitMs = Math.min(msUntil(endsAt), DISTRIBUTION_WAIT * collectTimeoutMs);
      const signBy = addMs(monotonicNow(), waitMs);
      /** The groups that would move too little. */
      const tried = new Set<symbol>();
      const collect = {
        wallet,
        claim,
        distributions: held,
        payers,
        minimum,
        block,
        leftOut,
        tried,
        endsAt,
        onSigned,
      };
      let missing: Lamports | undefined;
      for (;;) {
        const { size } = leftOut;
        const readAt = monotonicNow();
        const drafts = await readDrafts(collect);
        const slot = rpc.newestSlot();
        const least = minimum();
        const draft = drafts.find(({ amount }) => amount >= least);
        if (!draft) {
          const amount = drafts.reduce((most, each) => max(most, each.amount), toLamports(0));
          const belowMinimum = drafts.length > 0 ? amount : undefined;
          return { kind: "nothing", missing, belowMinimum } as const;
        }
        const leftMs = claim.backsOffMs();
        if (leftMs > 0) throw new CollectError({ kind: "backing-off", leftMs });
        if (!distributionsOf(draft.wanted.sweeps).every(({ coin }) => held.has(coin.mint))) {
          settleAll(held);
          const other = await claimDistributions(draft, held, signBy);
          if (other) return { kind: "other", other } as const;
          // Read again: another collect may have distributed the fees meanwhile.
          continue;
        }
        const signed = await plan(draft, { isAlone });
        if (signed === "lost") return { kind: "lost", readAt, slot } as const;
        if (signed) {
          if (!draft.isApart && drafts.length > 1) backoff.restTried(address);
          return { kind: "signed", signed } as const;
        }
        // Try again: without the coins that the planner left out, others may fit into the
        // transaction.
        if (leftOut.size > size) continue;
        tried.add(draft.id);
        missing ??= draft.missing;
      }
    }

    async function run(): Promise<CollectOutcome> {
      let movingNothing = 0;
      for (;;) {
        if (monotonicNow() > endsAt) throw new CollectError({ kind: "timed-out" });
        const claim = await claims.take(address, endsAt, wait);
        lastCollect = claim.lastCollect;
        floors.require(address, claim.landedSlot);
        if (claim.openTransaction) {
          await follow(claim, claim, claim.openTransaction);
          continue;
        }

        mayBeInFlight = false;
        const landedBefore = floors.landedSlotOf(address);
        let signedAt = LONG_AGO;
        /**
         * The claims of the sharing configs whose fees the transaction distributes, by the coin's
         * mint.
         */
        const distributions = new Map<string, Claim>();
        const prepared = await prepare(claim, distributions, () => {
          mayBeInFlight = true;
          signedAt = monotonicNow();
        }).catch((error: unknown) => {
          settleAll(distributions);
          claim.settle();
          throw error;
        });
        if (prepared.kind !== "signed") {
          settleAll(distributions);
          claim.settle();
          if (prepared.kind === "lost") proofs.add(prepared.readAt, prepared.slot);
          if (prepared.kind === "other")
            await follow(claim, prepared.other, prepared.other.openTransaction!);
          if (prepared.kind !== "nothing") continue;
          reported = undefined;
          return prepared;
        }
        const { signed } = prepared;
        const { transaction } = signed;
        settleAll(distributions, (mint) => !transaction.sweptMints?.includes(mint));
        const outcome = await land(claim, transaction);
        signed.close({
          refund: outcome.kind === "expired" && outcome.agreeing >= ENDPOINTS_FOR_REFUND,
        });
        if (outcome.kind !== "landed") {
          backoff.expired([...distributions.keys()]);
          settleAll(distributions);
          throw new CollectError({ kind: outcome.kind, signature: transaction.signature });
        }
        // An earlier transaction with the same bytes, and so the same signature, may be the one
        // that landed.
        const isEarlier = outcome.slot > 0 && outcome.slot <= landedBefore;
        reported = { hasAccount: true, outcome, signedAt: isEarlier ? undefined : signedAt };
        // Settle the distributions' claims last: collects that wait for them must see which coins
        // back off.
        const result = await readOutcome(
          {
            account,
            claim,
            transaction,
            outcome,
            timeoutMs: collectTimeoutMs,
            signed: { ...signed, block },
          },
          log,
        ).finally(() => {
          for (const each of distributions.values()) each.settle({ slot: outcome.slot });
        });
        inFlight = undefined;
        if (result === "failed-together") isAlone = true;
        // `nothing`: someone else collected first. Try again, because other fees may wait or may
        // have arrived since.
        else if (result.kind !== "nothing" || ++movingNothing === MAX_MOVING_NOTHING) return result;
      }
    }

    /**
     * Returns the account's address and, for lookups of shareholders, the curves of the swept
     * coins.
     */
    function changedBy({ sweptMints }: StoredTransaction): string[] {
      return [
        address,
        ...coins.filter(({ mint }) => sweptMints?.includes(mint)).map(({ curve }) => curve),
      ];
    }

    /**
     * Sends a stored transaction until its outcome is known. Settles the claim unless the
     * transaction landed.
     */
    async function land(claim: Claim, transaction: StoredTransaction): Promise<TransactionOutcome> {
      const { signature } = transaction;
      inFlight = { signature: () => signature, hasLanded: false };
      const outcome = await confirm(transaction, {
        maybeSent: claim.openTransaction !== undefined,
      });
      if (outcome.kind === "landed") {
        for (const changed of changedBy(transaction)) {
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

    /**
     * Reports the outcome of a followed transaction, unless this collect's own transaction moved
     * fees, or may have.
     */
    async function runOrFollow(): Promise<CollectOutcome> {
      const outcome = await run().catch((error: unknown) => {
        if (mayHaveMoved(error) || !(followed ?? unknown)) throw error;
        return { kind: "nothing" } as const;
      });
      if (outcome.kind === "collected") return outcome;
      if (followed) {
        reported = followed.transaction;
        return followed.outcome;
      }
      if (unknown !== undefined) throw new CollectError({ kind: "unknown", signature: unknown });
      return { ...outcome, lastCollect: lastCollect() };
    }

    const signature = () => inFlight?.signature();

    return {
      /** Rejects with {@link CollectError}, {@link RpcError}, or an error that marks a bug. */
      outcome: runOrFollow(),
      /** The mints of the coins left out so far, because they fail or cost too much. */
      leftOut: leftOut as ReadonlySet<string>,
      /**
       * Returns the signature of the transaction that this collect sends or waits for, if known.
       */
      signature,
      /** Call when a caller joins. */
      asked() {
        if (mayBeInFlight) proofs.readSlot();
      },
      /**
       * Whether the outcome is a result for a caller who asked at this time.
       */
      isResultFor: async (askedAt: MonotonicTime) =>
        reported === undefined || (await proofs.resultFor(askedAt, reported)) === "landed",
      timeoutError() {
        const current = signature();
        return inFlight?.hasLanded && current !== undefined
          ? new CollectError({ kind: "landed-unreadable", signature: current })
          : new CollectError({ kind: "still-running", signature: current });
      },
    };
  };
}

const max = (a: Lamports, b: Lamports): Lamports => (a > b ? a : b);

/**
 * Removes the claims that `isUnneeded` selects (by default all), and settles them without a
 * landing.
 */
function settleAll(
  held: Map<string, Claim>,
  isUnneeded: (mint: string) => boolean = () => true,
): void {
  for (const [mint, claim] of held) {
    if (!isUnneeded(mint)) continue;
    claim.settle();
    held.delete(mint);
  }
}
