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
 * Compares the ledger, what the replicas sent, and what they answered, to the lamport. Call it when no collect is
 * in flight. `totalBefore` is `totalAtAddresses` at the start.
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
   * The earliest time when a replica can have begun a transaction: the start of its accounts' oldest waiting request.
   * One that only distributes can be of any account that it pays.
   */
  function preparedSince(transaction: SentTransaction): number {
    const { accounts, replica, at } = transaction;
    const owners = ownersOf(transaction);
    const waiting = (owners.length > 0 ? owners : accounts)
      .flatMap(({ id }) => callsOf.get(id) ?? [])
      .filter((call) => call.replica === replica && call.start.at <= at && at <= call.end);
    return Math.min(at, ...waiting.map(({ start }) => start.at));
  }
  /** Whether a replica signed without knowing of the other's lock. */
  const signedAlone = (transaction: SentTransaction) =>
    overlaps(replicas[transaction.replica]!.withoutRedis, preparedSince(transaction), transaction.at);

  /** When a transaction's outcome was final. */
  const endOf = ({ signature, blockhash }: SentTransaction) =>
    timeline.landedAt(signature) ?? system.expiredAt(blockhash);

  /** Transactions that cost their fee and moved nothing, because replicas did not share their locks. */
  let paidForNothing = 0;
  /** Transactions signed while another of the account was open, because replicas did not share their locks. */
  let signedBesideAnother = 0;
  /** By vault: an account's transactions, and those that distribute a coin's fees. */
  const sentOf = new Map<string, SentTransaction[]>();
  for (const transaction of sent.values()) {
    if (transaction.vaults.length === 0) problems.add("a transaction for no account", transaction.signature);
    for (const vault of transaction.vaults) sentOf.set(vault, [...(sentOf.get(vault) ?? []), transaction]);
  }
  for (const transaction of sent.values()) {
    for (const account of ownersOf(transaction)) checkTold(transaction, account);
    for (const vault of transaction.vaults) checkAlone(transaction, vault);
  }

  function checkTold({ replica, signature, at }: SentTransaction, account: SandboxAccount): void {
    const last = (callsOf.get(account.id) ?? [])
      .filter((call) => call.replica === replica && call.start.at <= at)
      .toSorted((a, b) => a.end - b.end)
      .at(-1);
    if (last && last.end < at && last.answer.kind === "error" && SAYS_NOTHING_SENT.test(last.answer.message))
      problems.add("a transaction sent after its caller was told that none was", signature);
  }

  function checkAlone(transaction: SentTransaction, vault: string): void {
    const { signature, at } = transaction;
    const open = sentOf.get(vault)!.find((other) => other.at < at && at < endOf(other));
    if (!open) return;
    if (signedAlone(open) || signedAlone(transaction)) signedBesideAnother++;
    else problems.add("a second transaction for a vault", `${signature} beside ${open.signature}`);
  }

  for (const { signature } of forNothing) {
    const transaction = sent.get(signature);
    const others = transaction ? othersOf(transaction) : [];
    if (transaction && isExplained(transaction, others)) paidForNothing++;
    else problems.add("a fee paid for nothing", [transaction, ...others.slice(-3)].map(describe).join("; "));
  }

  function describe(transaction: SentTransaction | undefined): string {
    if (!transaction) return "never sent";
    const { signature, replica, at } = transaction;
    return `${signature} by ${replica}, prepared since ${preparedSince(transaction)}, sent at ${at}, ended at ${endOf(transaction)}`;
  }

  /**
   * Whether another transaction took the fees, because one of the two replicas could not know of the other, or because
   * Redis could not tell this one that a stale endpoint still showed them.
   */
  function isExplained(transaction: SentTransaction, others: readonly SentTransaction[]): boolean {
    const since = preparedSince(transaction);
    const isUnknown = others.some(
      (other) =>
        since <= endOf(other) &&
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

  /** The other transactions that empty its vaults, oldest first. */
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
