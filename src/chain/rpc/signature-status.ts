import type { Attempt, CallEndpoint, Endpoint } from "./rpc-endpoint.ts";
import { FINALIZED } from "./commitment.ts";
import type { Failover } from "./failover.ts";
import { RpcError } from "./rpc-error.ts";
import type { TransactionError } from "./transaction-error.ts";

/** The status of a transaction that a node has executed. */
export interface SignatureStatus {
  readonly err: TransactionError | null;
  readonly isFinal: boolean;
  /**
   * The slot in which the transaction was executed; 0 if the node or the chain cannot have reached
   * that slot.
   */
  readonly slot: number;
}

/** What one endpoint reports about a transaction whose blockhash may have expired. */
export type ExpiryReport =
  /** The endpoint failed, or is on another cluster. */
  | { readonly kind: "silent" }
  /** The blockhash is still valid at the endpoint: the transaction may still land. */
  | { readonly kind: "valid" }
  /** The endpoint proves neither that the transaction landed nor that it never can. */
  | { readonly kind: "past" }
  /** The endpoint proves that the transaction did not land and never can. */
  | { readonly kind: "absent" }
  /** The endpoint has a status for the transaction. */
  | { readonly kind: "found"; readonly status: SignatureStatus };

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
    isReached: (slot: number) => boolean;
  },
) {
  const { failover, callEndpoint, getFinalizedBlock, isReached, reportMs = REPORT_MS } = needs;

  async function readStatuses(
    endpoint: Endpoint,
    signatures: readonly string[],
    options: SearchOptions,
    signal: AbortSignal,
  ) {
    const method = "getSignatureStatuses";
    const { context, value } = await callEndpoint(endpoint, method, [signatures, options], signal);
    if (value.length !== signatures.length) throw new RpcError("unreadable", method, endpoint.host);
    const statuses = value.map((found): SignatureStatus | undefined => {
      if (!found) return undefined;
      const { err, confirmations, confirmationStatus } = found;
      // Used as `minContextSlot`, a slot that is too high would block reads.
      const slot = found.slot <= context.slot && isReached(found.slot) ? found.slot : 0;
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
      const statuses = signatures.map((): SignatureStatus | undefined => undefined);
      await failover.call(
        async (endpoint, signal) => {
          const open = [...statuses.keys()].filter((i) => !statuses[i]?.isFinal);
          const asked = open.map((i) => signatures[i]!);
          const found = await readStatuses(endpoint, asked, options, signal);
          found.statuses.forEach((status, i) => {
            if (status?.isFinal || !statuses[open[i]!]) statuses[open[i]!] = status;
          });
        },
        () => statuses.every((status) => status?.isFinal),
      );
      return statuses;
    },

    /**
     * A transaction's status at each configured endpoint; undefined where none can be read. Never
     * rejects.
     */
    async getStatusAtEach(signature: string): Promise<(SignatureStatus | undefined)[]> {
      const options = { searchTransactionHistory: true };
      const results = await failover.callEach(
        (endpoint, signal) => readStatuses(endpoint, [signature], options, signal),
        reportMs,
      );
      return results.map((result) =>
        result.status === "fulfilled" ? result.value.statuses[0] : undefined,
      );
    },

    /**
     * Asks each configured endpoint separately whether a transaction can still land; never rejects.
     * `blockhash` is undefined if the transaction's bytes cannot be decoded: no node accepts such
     * bytes.
     *
     * An endpoint reports `absent` when it meets three conditions, which together prove that the
     * transaction did not land and never can. First, its finalized block height is past the last
     * height at which the blockhash is valid, so no later block can include the transaction. Second, the endpoint
     * no longer accepts the blockhash: the last valid height comes from another endpoint, which may
     * lie. Third, the endpoint's search of the whole history, in that finalized slot or later,
     * finds no status. An impossibly high last valid height proves nothing, but must not keep an
     * account locked: an endpoint that does not accept the blockhash then reports `past`.
     */
    async getExpiryReports(transaction: {
      readonly signature: string;
      readonly blockhash: string | undefined;
      readonly lastValidBlockHeight: number;
    }): Promise<ExpiryReport[]> {
      const { signature, blockhash, lastValidBlockHeight } = transaction;
      const reports = await failover.callEach(async (endpoint, signal): Promise<ExpiryReport> => {
        const { blockHeight, absoluteSlot } = await getFinalizedBlock(endpoint, signal);
        const isWrongHeight = lastValidBlockHeight > blockHeight + MAX_BLOCKS_AHEAD;
        if (blockHeight <= lastValidBlockHeight && !isWrongHeight) return { kind: "valid" };
        try {
          const [accepted, { statuses, slot }] = await Promise.all([
            blockhash === undefined
              ? { value: false }
              : callEndpoint(
                  endpoint,
                  "isBlockhashValid",
                  [blockhash, { commitment: "processed" }],
                  signal,
                ),
            readStatuses(endpoint, [signature], { searchTransactionHistory: true }, signal),
          ]);
          const [status] = statuses;
          if (status) return { kind: "found", status };
          if (accepted.value) return { kind: "valid" };
          return { kind: slot >= absoluteSlot && !isWrongHeight ? "absent" : "past" };
        } catch {
          return { kind: "past" };
        }
      }, reportMs);
      return reports.map((report) =>
        report.status === "fulfilled" ? report.value : { kind: "silent" },
      );
    },
  };
}
