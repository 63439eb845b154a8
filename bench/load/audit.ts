import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { checkAnswers } from "./audit-answers.ts";
import { checkLedger } from "./audit-ledger.ts";
import type { CollectCall } from "./collects.ts";
import type { SentTransaction } from "./endpoints.ts";
import type { Problems } from "./problems.ts";
import { overlaps } from "./replica.ts";
import type { System } from "./system.ts";
import { SAYS_NOTHING_SENT } from "./wording.ts";

/**
 * The blockhash of a new transaction is younger than this when the oldest waiting request starts.
 */
const STORED_MS = 2_000;

/**
 * Compares the ledger with the transactions that replicas sent and with their answers, to the
 * lamport. Call this when no collect is in flight. `totalBefore` is `totalAtAddresses` at the
 * start.
 */
export function audit(
  system: System,
  collects: readonly CollectCall[],
  totalBefore: bigint,
  problems: Problems,
) {
  const { sent, timeline, replicas } = system;
  const { forNothing, ...ledger } = checkLedger(system, totalBefore, problems);
  const callsOf = Map.groupBy(collects, ({ account }) => account.id);

  /** The accounts whose vaults a transaction empties. */
  const ownersOf = ({ accounts, vaults }: SentTransaction) =>
    accounts.filter(({ creatorVault }) => vaults.includes(creatorVault));

  /**
   * When a replica can have begun to build a transaction: at the start of the oldest request
   * waiting for its accounts, or for any account that it pays, if it only distributes. The request
   * may have left since then, but not before the blockhash was produced. With a far older
   * blockhash, any replica may have signed it before.
   */
  function originOf(transaction: SentTransaction) {
    const { accounts, replica, blockhash, at } = transaction;
    const owners = ownersOf(transaction);
    const waiting = (owners.length > 0 ? owners : accounts)
      .flatMap(({ id }) => callsOf.get(id) ?? [])
      .filter((call) => call.replica === replica && call.start.at <= at && at <= call.end);
    const askedAt = Math.min(at, ...waiting.map(({ start }) => start.at));
    const { at: blockhashAt = askedAt } = system.blockhashes.get(blockhash) ?? {};
    const isOld = blockhashAt < askedAt - STORED_MS;
    return {
      since: Math.min(askedAt, blockhashAt),
      signers: isOld ? replicas : [replicas[replica]!],
    };
  }
  /** Whether a replica may have signed a transaction without seeing the other replica's locks. */
  function signedAlone(transaction: SentTransaction): boolean {
    const { since, signers } = originOf(transaction);
    return signers.some(({ withoutRedis }) => overlaps(withoutRedis, since, transaction.at));
  }

  /** When a transaction's outcome was final. */
  const endOf = ({ signature, blockhash }: SentTransaction) =>
    timeline.landedAt(signature) ?? system.expiredAt(blockhash);

  const slotOf = new Map(
    system.sandbox.chain.ledger().map(({ signature, slot }) => [signature, slot]),
  );
  /** When healthy endpoints showed a transaction's outcome: they show only what is finalized. */
  const shownAt = (transaction: SentTransaction) => {
    const slot = slotOf.get(transaction.signature);
    return slot === undefined ? endOf(transaction) : system.finalizedAt(slot);
  };

  /**
   * The number of transactions that paid a fee and moved nothing, with an excuse: see
   * `isExplained`.
   */
  let paidForNothing = 0;
  /**
   * The number of transactions signed while another one for the vault was open, because a lock was
   * not visible.
   */
  let signedBesideAnother = 0;
  /** The sent transactions by vault, which belongs to an account or to a coin's sharing config. */
  const sentOf = new Map<string, SentTransaction[]>();
  for (const transaction of sent.values()) {
    if (transaction.vaults.length === 0)
      problems.add("a transaction for no account", transaction.signature);
    for (const vault of transaction.vaults)
      sentOf.set(vault, [...(sentOf.get(vault) ?? []), transaction]);
  }
  for (const transaction of sent.values()) {
    for (const account of ownersOf(transaction)) checkTold(transaction, account);
    for (const vault of transaction.vaults) checkAlone(transaction, vault);
  }

  function checkTold(transaction: SentTransaction, account: SandboxAccount): void {
    const { replica, at } = transaction;
    const last = (callsOf.get(account.id) ?? [])
      .filter((call) => call.replica === replica && call.start.at <= at)
      .toSorted((a, b) => a.end - b.end)
      .at(-1);
    if (
      last &&
      last.end < at &&
      last.answer.kind === "error" &&
      SAYS_NOTHING_SENT.test(last.answer.message)
    )
      problems.add(
        "a transaction sent after its caller was told that none was",
        `${account.handle} at ${last.end} at replica ${replica}: ${last.answer.message}; then ${describe(transaction)}`,
        at,
      );
  }

  function checkAlone(transaction: SentTransaction, vault: string): void {
    const { signature, at } = transaction;
    const open = sentOf.get(vault)!.find((other) => other.at < at && at < endOf(other));
    if (!open) return;
    if (signedAlone(open) || signedAlone(transaction)) signedBesideAnother++;
    else
      problems.add("a second transaction for a vault", `${signature} beside ${open.signature}`, at);
  }

  for (const { signature } of forNothing) {
    const transaction = sent.get(signature);
    const others = transaction ? othersOf(transaction) : [];
    if (transaction && isExplained(transaction, others)) paidForNothing++;
    else
      problems.add(
        "a fee paid for nothing",
        [
          transaction,
          ...others.filter(({ at }) => transaction && at <= endOf(transaction)).slice(-3),
        ]
          .map(describe)
          .join("; "),
        transaction?.at,
      );
  }

  function describe(transaction: SentTransaction | undefined): string {
    if (!transaction) return "never sent";
    const { signature, replica, at } = transaction;
    return `${signature} by ${replica}, prepared since ${originOf(transaction).since}, sent at ${at}, ended at ${endOf(transaction)}`;
  }

  /**
   * Whether a transaction that moved nothing has an excuse. Either another transaction took the
   * fees while a replica could not see the other's locks. Or a stale endpoint still showed
   * collected fees, while the replica could not reach Redis or did not trust the newest slots yet.
   */
  function isExplained(transaction: SentTransaction, others: readonly SentTransaction[]): boolean {
    const since = originOf(transaction).since;
    const isUnknown = others.some(
      (other) =>
        since <= shownAt(other) &&
        other.at <= endOf(transaction) &&
        (signedAlone(other) || signedAlone(transaction)),
    );
    const last = others.findLast((other) => endOf(other) <= transaction.at);
    const away = [system.frozen, system.skipped, replicas[transaction.replica]!.withoutRedis];
    const isUntold =
      last !== undefined &&
      overlaps(system.stale, since, transaction.at) &&
      away.some((periods) => overlaps(periods, endOf(last), transaction.at));
    return isUnknown || isUntold;
  }

  /** The other transactions that empty the same vaults, oldest first. */
  function othersOf(transaction: SentTransaction): SentTransaction[] {
    return transaction.vaults
      .flatMap((vault) => sentOf.get(vault) ?? [])
      .filter((other) => other !== transaction)
      .sort((a, b) => a.at - b.at);
  }

  return {
    ...ledger,
    paidForNothing,
    signedBesideAnother,
    answers: checkAnswers(system, collects, problems),
  };
}
