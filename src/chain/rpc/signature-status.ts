import type { Attempt, CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import { FINALIZED } from "./commitment.ts";
import type { Failover } from "./failover.ts";
import { RpcError } from "./rpc-error.ts";
import type { TransactionError } from "./transaction-error.ts";
import type { LandedTransaction, ReadTransactionAt } from "./read-transactions.ts";

/** The status of a transaction that a node has executed. */
export interface SignatureStatus {
  readonly err: TransactionError | null;
  readonly isFinal: boolean;
  /**
   * The slot in which the transaction was executed; 0 if the node cannot have reached that slot.
   */
  readonly slot: number;
}

/** What one endpoint reports about a signed transaction. */
export type TransactionReport =
  /**
   * The endpoint is down or on another cluster, or does not know the transaction while its own
   * state has a fault.
   */
  | { readonly kind: "silent" }
  /** The endpoint failed just now, but may work again soon. */
  | { readonly kind: "failing" }
  /** The endpoint does not know the transaction, and does not say whether it can still land. */
  | { readonly kind: "unknown" }
  /** The blockhash is still valid at the endpoint: the transaction may still land. */
  | { readonly kind: "valid" }
  /** The endpoint proves neither that the transaction landed nor that it never can. */
  | { readonly kind: "past" }
  /** The endpoint proves that the transaction did not land and never can. */
  | { readonly kind: "absent" }
  /** The endpoint has a final status, but has not returned the transaction. */
  | { readonly kind: "found"; readonly err: TransactionError | null; readonly slot: number }
  /** The endpoint returns the final transaction. */
  | { readonly kind: "read"; readonly transaction: LandedTransaction };

/** A report about a transaction whose blockhash may have expired. */
export interface ExpiryReport {
  readonly report: TransactionReport;
  /** The endpoint's finalized block height; undefined if it is silent. */
  readonly blockHeight: number | undefined;
}

export interface FinalizedBlock {
  readonly blockHeight: number;
  readonly absoluteSlot: number;
}

/** Tests pass shorter waits. The defaults are for production. */
export interface ReportWaits {
  /** How long each endpoint has for its {@link ExpiryReport}. */
  readonly reportMs?: number | undefined;
  /** How long all collects share one read of an endpoint's newest finalized block. */
  readonly finalizedMaxAgeMs?: number | undefined;
}

interface SearchOptions {
  /** Also search blocks older than the last few minutes. */
  readonly searchTransactionHistory: boolean;
}

interface LandingReportsWanted {
  readonly isEnough: (reports: readonly TransactionReport[]) => boolean;
  readonly withStatus: boolean;
}

/** The limit of `getSignatureStatuses`. */
export const MAX_SIGNATURES_PER_CALL = 256;
const REPORT_MS = 5_000;
/**
 * A blockhash's last valid height is wrong if it is this far ahead of a node's finalized block: a
 * new blockhash is valid for 150 blocks. The rest allows for a node that is behind.
 */
const MAX_BLOCKS_AHEAD = 1_000;

export function createSignatureStatuses(
  needs: ReportWaits & {
    failover: Failover;
    callEndpoint: CallEndpoint;
    /**
     * The newest finalized block of an endpoint. Throws {@link RpcError} for a height that is not
     * credible.
     */
    getFinalizedBlock: Attempt<FinalizedBlock>;
    isReachedAt: (endpoint: Endpoint, slot: number) => boolean;
    readTransactionAt: ReadTransactionAt;
    /** Whether an endpoint's state is worse than the others'; see {@link createEndpointRanking}. */
    isOverruled: (endpoint: Endpoint) => boolean;
    isDown: (endpoint: Endpoint) => boolean;
    /** Records which endpoints returned a transaction, and which could not be asked for it. */
    recordReads: (readers: readonly Endpoint[], failures: ReadonlyMap<Endpoint, unknown>) => void;
  },
) {
  const {
    failover,
    callEndpoint,
    getFinalizedBlock,
    isReachedAt,
    readTransactionAt,
    isOverruled,
    isDown,
  } = needs;
  const { reportMs = REPORT_MS } = needs;

  async function readStatuses(
    endpoint: Endpoint,
    signatures: readonly string[],
    options: SearchOptions,
    signal: AbortSignal,
  ) {
    const method = "getSignatureStatuses";
    const { context, value } = await callEndpoint(endpoint, method, [signatures, options], signal);
    if (value.length !== signatures.length) throw new RpcError("unreadable", method, endpoint.host);
    const statuses = value.map((entry): SignatureStatus | undefined => {
      if (!entry) return undefined;
      const { err, confirmations, confirmationStatus } = entry;
      // Used as `minContextSlot`, a slot that is too high would block reads.
      const isCredible = entry.slot <= context.slot && isReachedAt(endpoint, entry.slot);
      const slot = isCredible ? entry.slot : 0;
      const isFinal = confirmationStatus === FINALIZED.commitment || confirmations === null;
      return { err, isFinal, slot };
    });
    return { statuses, slot: context.slot };
  }

  return {
    /**
     * Returns statuses of up to 256 signatures, in order. Asks the next endpoints about those not
     * final yet.
     */
    async getSignatureStatuses(signatures: readonly string[], options: SearchOptions) {
      const statuses = new Map<string, SignatureStatus>();
      const isFinal = (signature: string) => statuses.get(signature)?.isFinal;
      await failover.callAtOnce(
        async (endpoint, signal) => {
          const open = signatures.filter((signature) => !isFinal(signature));
          const answer = await readStatuses(endpoint, open, options, signal);
          open.forEach((signature, i) => {
            const status = answer.statuses[i];
            if (status?.isFinal || (status && !statuses.has(signature)))
              statuses.set(signature, status);
          });
        },
        () => signatures.every(isFinal),
      );
      return signatures.map((signature) => statuses.get(signature));
    },

    /**
     * Asks the two best endpoints for a transaction that begins with these account keys, and then
     * the others too, unless `isEnough`. With `withStatus`, asks an endpoint that does not return
     * the transaction for its status. Never rejects.
     */
    async getLandingReports(
      signature: string,
      accountKeys: readonly string[],
      { isEnough, withStatus }: LandingReportsWanted,
    ): Promise<TransactionReport[]> {
      const isRight = (keys: readonly string[]) => accountKeys.every((key, i) => keys[i] === key);
      const readAt = readTransactionAt(signature, isRight);
      const readers: Endpoint[] = [];
      const failures = new Map<Endpoint, unknown>();
      const reports = await failover.callTwoAtOnce<TransactionReport>(
        async (endpoint, signal) => {
          const transaction = await readAt(endpoint, signal).catch((error: unknown) => {
            failures.set(endpoint, error);
          });
          if (transaction) {
            readers.push(endpoint);
            return { kind: "read", transaction };
          }
          if (!withStatus) {
            if (failures.has(endpoint)) throw failures.get(endpoint);
            return { kind: "unknown" };
          }
          const { statuses } = await readStatuses(endpoint, [signature], SEARCH, signal);
          const [status] = statuses;
          if (status?.isFinal) return toFound(status);
          return isOverruled(endpoint) ? { kind: "silent" } : { kind: "unknown" };
        },
        (endpoint) => ({ kind: isDown(endpoint) ? "silent" : "failing" }),
        isEnough,
      );
      needs.recordReads(readers, failures);
      return reports;
    },

    /**
     * Asks each configured endpoint separately whether a transaction can still land; never rejects.
     * An endpoint whose own state has a fault cannot say that it can. `blockhash` is undefined if
     * the transaction's bytes cannot be decoded: no node accepts such bytes.
     *
     * An endpoint reports `absent` when it meets three conditions, which together prove that the
     * transaction did not land and never can. First, its finalized block height is past the last
     * height at which the blockhash is valid, so no later block can include the transaction.
     * Second, the endpoint no longer accepts the blockhash: the last valid height comes from
     * another endpoint, which may lie. Third, the endpoint's search of the whole history, in that
     * finalized slot or later, finds no status. An impossibly high last valid height proves
     * nothing, but must not keep an account locked: an endpoint that does not accept the blockhash
     * then reports `past`.
     */
    async getExpiryReports(transaction: {
      readonly signature: string;
      readonly blockhash: string | undefined;
      readonly lastValidBlockHeight: number;
    }): Promise<ExpiryReport[]> {
      const { signature, blockhash, lastValidBlockHeight } = transaction;
      const results = await failover.callEach(async (endpoint, signal): Promise<ExpiryReport> => {
        const { blockHeight, absoluteSlot } = await getFinalizedBlock(endpoint, signal);
        const say = (report: TransactionReport): ExpiryReport => ({ report, blockHeight });
        const valid = (): ExpiryReport =>
          isOverruled(endpoint) ? SILENT_ABOUT_EXPIRY : say({ kind: "valid" });
        const isWrongHeight = lastValidBlockHeight > blockHeight + MAX_BLOCKS_AHEAD;
        if (blockHeight <= lastValidBlockHeight && !isWrongHeight) return valid();
        try {
          const [validity, { statuses, slot }] = await Promise.all([
            blockhash === undefined
              ? { value: false }
              : callEndpoint(
                  endpoint,
                  "isBlockhashValid",
                  [blockhash, { commitment: "processed" }],
                  signal,
                ),
            readStatuses(endpoint, [signature], SEARCH, signal),
          ]);
          const [status] = statuses;
          if (status?.isFinal) return say(toFound(status));
          if (status) return say({ kind: "unknown" });
          if (validity.value) return valid();
          return say({ kind: slot >= absoluteSlot && !isWrongHeight ? "absent" : "past" });
        } catch {
          return say({ kind: "past" });
        }
      }, reportMs);
      return results.map((result) =>
        result.status === "fulfilled" ? result.value : SILENT_ABOUT_EXPIRY,
      );
    },
  };
}

const SEARCH: SearchOptions = { searchTransactionHistory: true };
const SILENT_ABOUT_EXPIRY: ExpiryReport = { report: { kind: "silent" }, blockHeight: undefined };

/** A final status, without the transaction. */
export const toFound = ({
  err,
  slot,
}: Pick<SignatureStatus, "err" | "slot">): TransactionReport => ({ kind: "found", err, slot });
