import { isDeepStrictEqual } from "node:util";
import { monotonicNow, msBetween, msSince, type MonotonicTime } from "../../time/monotonic.ts";
import { withDeadline } from "../../upstream/deadline.ts";
import { FINALIZED } from "./commitment.ts";
import { SLOTS_PER_SECOND, type Endpoints } from "./endpoints.ts";
import type { Failover } from "./failover.ts";
import { readTransactionWith, type LandedTransaction } from "./read-transaction.ts";
import type { Attempt, Endpoint } from "./rpc-endpoint.ts";
import { isUnsupported, RpcError } from "./rpc-error.ts";
import type { RpcResult, TransactionError } from "./rpc-results.ts";

/** A signed transaction whose outcome is to be found. */
export interface TrackedTransaction {
  readonly signature: string;
  /** In base58, in order; undefined if the transaction's bytes cannot be decoded. */
  readonly accountKeys: readonly string[] | undefined;
  readonly blockhash: string | undefined;
  readonly lastValidBlockHeight: number;
}

/** The transaction is in a block. */
export interface Landed {
  readonly kind: "landed";
  readonly err: TransactionError | null;
  readonly slot: number;
  /** Undefined if no endpoint has returned it yet. */
  readonly transaction?: LandedTransaction | undefined;
}

export type TransactionOutcome =
  | Landed
  /** The transaction did not land and never can. */
  | { readonly kind: "expired" }
  /** Whether it landed is unknown. `hosts`: the endpoints that contradict each other, if any. */
  | { readonly kind: "unknown"; readonly hosts: readonly string[] };

/** What an endpoint reports about a signed transaction. */
export type Report =
  | Landed
  /** The endpoint proves that the transaction did not land and never can. */
  | { readonly kind: "absent" }
  /** The endpoint does not know it, in this slot. */
  | { readonly kind: "null"; readonly slot: number }
  | { readonly kind: "failed" };

/** An endpoint's last report, and for how long its reports have been of this kind. */
export interface Sighting {
  readonly host: string;
  readonly report: Report;
  readonly forMs: number;
}

/** Tests pass shorter waits. The defaults are for production. */
export interface OutcomeWaits {
  /** How long other endpoints have to confirm, or to stop contradicting, one that says landed. */
  readonly aloneMs?: number | undefined;
  /** The least time between the first and the last report of an endpoint that it never landed. */
  readonly absentMs?: number | undefined;
  /** How long other endpoints must have failed meanwhile. */
  readonly failedMs?: number | undefined;
  /** The longest life of a blockhash: 150 blocks, at one block a second. */
  readonly unknownAfterMs?: number | undefined;
}

export const UNKNOWN_AFTER_MS = 150_000;

/**
 * Decides what became of a transaction that was sent `sentMs` ago; undefined if that is open. An
 * endpoint alone decides only if no other one contradicts it. The first row that applies:
 *
 * | Reports                                                              | Outcome  |
 * | -------------------------------------------------------------------- | -------- |
 * | two say landed, with one slot and error                              | landed   |
 * | one says landed, and each other one has failed or not known it for   |          |
 * | `aloneMs`, or is more than a second below its slot                   | landed   |
 * | some say landed and differ, or others prove that it is absent, for   |          |
 * | `aloneMs`                                                            | unknown  |
 * | all that answer prove that it is absent, twice, and the others have  |          |
 * | failed for `failedMs`                                                | expired  |
 * | any other, `unknownAfterMs` after the send                           | unknown  |
 */
export function decide(
  sightings: readonly Sighting[],
  sentMs: number,
  waits: OutcomeWaits = {},
): TransactionOutcome | undefined {
  const {
    aloneMs = 3_000,
    absentMs = 2_000,
    failedMs = 5_000,
    unknownAfterMs = UNKNOWN_AFTER_MS,
  } = waits;
  const landings = sightings.flatMap(({ report }) => (report.kind === "landed" ? [report] : []));
  const absent = sightings.filter(({ report }) => report.kind === "absent");
  const others = sightings.filter(({ report }) => isNothing(report));
  const [landing] = landings;
  if (landing) {
    const agreed = landings.filter((a) => landings.some((b) => a !== b && isSame(a, b)));
    if (agreed.length > 0) return agreed.find(({ transaction }) => transaction) ?? agreed[0];
    const isExcused = ({ report, forMs }: Sighting) =>
      forMs >= aloneMs || (report.kind === "null" && report.slot < landing.slot - SLOTS_PER_SECOND);
    const saying = sightings.filter((each) => !others.includes(each));
    if (saying.length === 1) {
      if (others.every(isExcused)) return landing;
    } else if (saying.every(({ forMs }) => forMs >= aloneMs))
      return { kind: "unknown", hosts: saying.map(({ host }) => host) };
  } else {
    const hasFailed = ({ report, forMs }: Sighting) =>
      report.kind === "failed" && forMs >= failedMs;
    const isAbsent = absent.length > 0 && absent.every(({ forMs }) => forMs >= absentMs);
    if (isAbsent && others.every(hasFailed)) return { kind: "expired" };
  }
  return sentMs >= unknownAfterMs ? { kind: "unknown", hosts: [] } : undefined;
}

const FAILED: Report = { kind: "failed" };

const isNothing = ({ kind }: Report) => kind === "null" || kind === "failed";

const hasReturned = (report: Report | undefined) =>
  report?.kind === "landed" && report.transaction !== undefined;

/** Whether two reports can be of one transaction. Some nodes leave out the time of its block. */
function isSame(a: Landed, b: Landed): boolean {
  const withAmounts = a.transaction && b.transaction;
  const factsOf = ({ slot, err, transaction }: Landed) =>
    withAmounts ? [slot, err, transaction?.fee, transaction?.balances] : [slot, err];
  return isDeepStrictEqual(factsOf(a), factsOf(b));
}

/** Asks the endpoints about signed transactions. */
export function createOutcomes(
  needs: OutcomeWaits & {
    endpoints: Endpoints;
    failover: Failover;
    getFinalizedBlock: (endpoint: Endpoint) => Promise<RpcResult<"getEpochInfo">>;
    rpcTimeoutMs: number;
  },
) {
  const { endpoints, failover, getFinalizedBlock, rpcTimeoutMs } = needs;
  const { callEndpoint, newestSlot } = endpoints;

  const inOrder = () => endpoints.inOrder("sends", newestSlot());

  async function readStatuses(
    endpoint: Endpoint,
    signatures: readonly string[],
    searchTransactionHistory: boolean,
    signal: AbortSignal,
  ): Promise<Report[]> {
    const method = "getSignatureStatuses";
    const params = [signatures, { searchTransactionHistory }];
    const { context, value } = await callEndpoint(endpoint, method, params, signal);
    if (value.length !== signatures.length) throw new RpcError("unreadable", method, endpoint.host);
    return value.map((status) => {
      if (!status) return { kind: "null", slot: context.slot };
      const { err, slot, confirmations, confirmationStatus } = status;
      const isFinal = confirmationStatus === FINALIZED.commitment || confirmations === null;
      return isFinal ? { kind: "landed", err, slot } : { kind: "null", slot: Infinity };
    });
  }

  /** Asks for the transaction; if the endpoint does not return it in time, for its status. */
  const readLanding =
    ({ signature, accountKeys = [] }: TrackedTransaction): Attempt<Report> =>
    async (endpoint, signal) => {
      const readTransaction = readTransactionWith(callEndpoint, signature, accountKeys);
      let error: unknown;
      const transaction = await withDeadline(endpoints.slowMs, (deadline) =>
        readTransaction(endpoint, deadline),
      ).catch((cause: unknown) => {
        error = cause;
      });
      if (transaction)
        return { kind: "landed", err: transaction.err, slot: transaction.slot, transaction };
      const [report] = await readStatuses(endpoint, [signature], !isUnsupported(error), signal);
      return report!;
    };

  /**
   * Asks whether the transaction can still land. Three conditions prove together that it never
   * landed and never can. First, the endpoint's finalized block height is past the last height at
   * which the blockhash is valid. Second, the endpoint no longer accepts the blockhash. Third, its
   * search of the whole history, in that finalized slot or later, finds no status. No node accepts
   * bytes that cannot be decoded. Undefined while the blockhash is valid.
   */
  const readExpiry =
    ({
      signature,
      blockhash,
      lastValidBlockHeight,
    }: TrackedTransaction): Attempt<Report | undefined> =>
    async (endpoint, signal) => {
      const { blockHeight, absoluteSlot } = await getFinalizedBlock(endpoint);
      if (blockHeight <= lastValidBlockHeight) return undefined;
      const params = [blockhash, { commitment: "processed" }];
      const [validity, [report]] = await Promise.all([
        blockhash && callEndpoint(endpoint, "isBlockhashValid", params, signal),
        readStatuses(endpoint, [signature], true, signal),
      ]);
      const isUnknown = report?.kind === "null" && report.slot !== Infinity;
      const isAbsent = isUnknown && report.slot >= absoluteSlot && !(validity && validity.value);
      return isAbsent ? { kind: "absent" } : report!;
    };

  /** Tracks a transaction that is sent now, or was sent earlier. */
  function trackOutcome(transaction: TrackedTransaction) {
    const sentAt = monotonicNow();
    /** Each endpoint's last report, and when its first and last report of this kind came. */
    const reports = new Map<
      Endpoint,
      { report: Report; firstAt: MonotonicTime; at: MonotonicTime }
    >();

    function see(endpoint: Endpoint, next: Report, isProof: boolean): void {
      const last = reports.get(endpoint);
      // Only a question that can prove it takes a proof back.
      if (last?.report.kind === "absent" && next.kind === "null" && !isProof) return;
      // A node behind the same balancer may not know it, or not return it, yet.
      const report = last?.report.kind === "landed" && !hasReturned(next) ? last.report : next;
      const at = monotonicNow();
      // An endpoint that serves only some methods fails and says null by turns.
      const isSame =
        last && (last.report.kind === report.kind || [last.report, report].every(isNothing));
      const firstAt = isSame ? last.firstAt : at;
      reports.set(endpoint, { report, firstAt, at });
    }

    function toSighting(endpoint: Endpoint): Sighting {
      const { host } = endpoint;
      const now = monotonicNow();
      const unheard = { report: FAILED, firstAt: now, at: now };
      const { report, firstAt, at } = reports.get(endpoint) ?? unheard;
      // What a node does not know that is far behind says nothing.
      if (report.kind === "null" && endpoints.isBehind(endpoint))
        return { host, report: FAILED, forMs: Infinity };
      const forMs = msBetween(firstAt, report.kind === "absent" ? at : now);
      const failedMs = (["reads", "sends"] as const).map((kind) =>
        report === FAILED ? endpoints.failsForMs(endpoint, kind) : 0,
      );
      return { host, report, forMs: Math.max(forMs, ...failedMs) };
    }

    const decideNow = () => decide(inOrder().map(toSighting), msSince(sentAt), needs);

    /**
     * Resolves as soon as there is an outcome, or all have answered. `isProof`: whether an answer
     * can prove that it never landed.
     */
    async function ask(
      some: readonly Endpoint[],
      attempt: Attempt<Report | undefined>,
      isProof = false,
    ) {
      const decided = Promise.withResolvers<TransactionOutcome | undefined>();
      const answers = some.map(async (endpoint) => {
        const report = await failover
          .callOne(endpoint, "sends", attempt, rpcTimeoutMs / 5)
          .catch(() => FAILED);
        if (report) see(endpoint, report, isProof);
        const outcome = decideNow();
        if (outcome) decided.resolve(outcome);
      });
      return Promise.race([decided.promise, Promise.all(answers).then(decideNow)]);
    }

    return {
      /** Asks two endpoints for the transaction, then the others. Undefined while it is open. */
      async look(): Promise<TransactionOutcome | undefined> {
        const open = inOrder().filter((endpoint) => !hasReturned(reports.get(endpoint)?.report));
        const attempt = readLanding(transaction);
        return (await ask(open.slice(0, 2), attempt)) ?? ask(open.slice(2), attempt);
      },

      /** Asks all endpoints whether it can still land. Undefined while it is open. */
      lookForExpiry: () => ask(inOrder(), readExpiry(transaction), true),
    };
  }

  return {
    trackOutcome,

    /**
     * Returns those of up to 256 transactions of the last minutes that have landed. Asks the
     * endpoint that is furthest, and others while one is missing: a node may have lost its statuses.
     */
    async findLanded(signatures: readonly string[]): Promise<ReadonlySet<string>> {
      const landed = new Set<string>();
      await failover.call(
        "sends",
        async (endpoint, signal) => {
          const reports = await readStatuses(endpoint, signatures, false, signal);
          for (const [i, { kind }] of reports.entries())
            if (kind === "landed") landed.add(signatures[i]!);
        },
        {
          isAtOnce: true,
          minSlot: newestSlot,
          isEnough: () => landed.size === signatures.length,
        },
      );
      return landed;
    },
  };
}
