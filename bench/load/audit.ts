import { readConfig } from "../../src/config.ts";
import type { SandboxTransaction } from "../../src/sandbox/chain/chain.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { checkAnswers } from "./audit-answers.ts";
import type { CollectCall } from "./callers.ts";
import type { SentTransaction } from "./endpoints.ts";
import type { Problems } from "./problems.ts";
import { overlaps } from "./replica.ts";
import type { System } from "./system.ts";
import { SAYS_NOTHING_SENT } from "./wording.ts";

/** A run according to the chain's ledger. */
export interface Audit {
  readonly transactions: number;
  /** The accounts of all transactions: more than transactions when accounts share them. */
  readonly accountsCollected: number;
  readonly collectedLamports: bigint;
  readonly feesLamports: bigint;
  /** Transactions that cost their fee and moved nothing, because replicas did not share their locks. */
  readonly paidForNothing: number;
  /** Transactions signed while another of the account was open, because replicas did not share their locks. */
  readonly signedBesideAnother: number;
  readonly answers: ReturnType<typeof checkAnswers>;
}

/** The total lamports at all accounts' addresses. */
export function totalAtAddresses({ sandbox }: System): bigint {
  return sum(sandbox.accounts.map(({ address }) => sandbox.chain.balance(address)));
}

/**
 * Compares the ledger, what the replicas sent, and what they answered, to the lamport. Call it when no collect is
 * in flight. `totalBefore` is {@link totalAtAddresses} at the start.
 */
export function audit(
  system: System,
  collects: readonly CollectCall[],
  totalBefore: bigint,
  problems: Problems,
): Audit {
  const { chain, env } = system.sandbox;
  const { accounts, sent, timeline, replicas } = system;
  const feePayer = readConfig(env).secrets.feePayer.publicKey.toBase58();
  const transactions = chain.ledger().filter(({ message }) => message.staticAccounts[0] === feePayer);
  const callsOf = Map.groupBy(collects, ({ account }) => account.id);

  /** The earliest time when a replica can have begun a transaction: the start of its accounts' oldest waiting request. */
  function preparedSince({ accounts, replica, at }: SentTransaction): number {
    const waiting = accounts
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

  let paidForNothing = 0;
  let signedBesideAnother = 0;
  const sentOf = new Map<string, SentTransaction[]>();
  for (const transaction of sent.values()) {
    if (transaction.accounts.length === 0)
      problems.add("a transaction for no account", transaction.signature);
    for (const { id } of transaction.accounts) sentOf.set(id, [...(sentOf.get(id) ?? []), transaction]);
  }
  for (const transaction of sent.values())
    for (const account of transaction.accounts) checkSent(transaction, account);

  function checkSent(transaction: SentTransaction, account: SandboxAccount): void {
    const { replica, signature, at } = transaction;
    const calls = (callsOf.get(account.id) ?? []).filter(
      (call) => call.replica === replica && call.start.at <= at,
    );
    const last = calls.reduce<CollectCall | undefined>(
      (latest, call) => (latest && latest.end > call.end ? latest : call),
      undefined,
    );
    if (last && last.end < at && last.answer.kind === "error" && SAYS_NOTHING_SENT.test(last.answer.message))
      problems.add("a transaction sent after its caller was told that none was", signature);
    const open = sentOf.get(account.id)!.find((other) => other.at < at && at < endOf(other));
    if (!open) return;
    if (signedAlone(open) || signedAlone(transaction)) signedBesideAnother++;
    else problems.add("a second transaction for an account", `${signature} beside ${open.signature}`);
  }

  let collectedLamports = 0n;
  let accountsCollected = 0;
  for (const transaction of transactions) {
    const { signature, err, feeLamports } = transaction;
    if (err !== null) problems.add("a transaction that failed", `${signature}: ${JSON.stringify(err)}`);
    const changes = changesIn(transaction);
    let arrived = 0n;
    const collected = accounts.filter(({ address }) => changes.has(address));
    for (const { handle, address, creatorVault, ammVault, ammVaultAuthority, coins } of collected) {
      const gained = changes.get(address)!;
      const places = [
        ...[creatorVault, ammVault, ammVaultAuthority],
        ...coins.flatMap(({ curve, poolTokens }) => [curve, poolTokens]),
      ];
      const left = -sum(places.map((place) => changes.get(place) ?? 0n));
      arrived += gained;
      if (left !== gained)
        problems.add(
          "lamports that did not arrive",
          `${signature} for ${handle}: ${left} left the vaults, ${gained} arrived`,
        );
    }
    accountsCollected += collected.length;
    collectedLamports += arrived;
    if (changes.get(feePayer) !== -feeLamports)
      problems.add("a fee payer that paid more than the fee", signature);
    if (arrived <= 0n && isExplained(signature)) paidForNothing++;
    else if (arrived <= 0n) problems.add("a fee paid for nothing", `${signature}: ${historyOf(signature)}`);
  }

  /** The account's transactions around one. */
  function historyOf(signature: string): string {
    const transaction = sent.get(signature);
    const all = transaction?.accounts.flatMap(({ id }) => sentOf.get(id) ?? []) ?? [];
    const index = transaction ? all.indexOf(transaction) : 0;
    return all
      .slice(Math.max(0, index - 2), index + 2)
      .map(
        (each) =>
          `${each.signature} by ${each.replica}, prepared since ${preparedSince(each)}, sent at ${each.at}, ended at ${endOf(each)}`,
      )
      .join("; ");
  }

  /**
   * Whether another transaction took the fees, because one of the two replicas could not know of the other, or because
   * Redis could not tell this one that a stale endpoint still showed them.
   */
  function isExplained(signature: string): boolean {
    const transaction = sent.get(signature);
    if (!transaction) return false;
    const since = preparedSince(transaction);
    return (
      othersOf(transaction).some(
        (other) =>
          since <= endOf(other) &&
          other.at <= endOf(transaction) &&
          (signedAlone(other) || signedAlone(transaction)),
      ) || wasUntold(transaction, since)
    );
  }

  function wasUntold(transaction: SentTransaction, since: number): boolean {
    const last = othersOf(transaction).findLast((other) => endOf(other) <= transaction.at);
    const away = [system.frozen, replicas[transaction.replica]!.withoutRedis];
    return (
      last !== undefined &&
      overlaps(system.stale, since, transaction.at) &&
      away.some((periods) => overlaps(periods, endOf(last), transaction.at))
    );
  }

  /** The other transactions of its accounts, oldest first. */
  function othersOf(transaction: SentTransaction): SentTransaction[] {
    return transaction.accounts
      .flatMap(({ id }) => sentOf.get(id) ?? [])
      .filter((other) => other !== transaction)
      .sort((a, b) => a.at - b.at);
  }

  const arrived = totalAtAddresses(system) - totalBefore;
  if (arrived !== collectedLamports)
    problems.add("lamports that no transaction moved", `${arrived} arrived, ${collectedLamports} were moved`);
  return {
    transactions: transactions.length,
    accountsCollected,
    collectedLamports,
    feesLamports: sum(transactions.map(({ feeLamports }) => feeLamports)),
    paidForNothing,
    signedBesideAnother,
    answers: checkAnswers(system, collects, problems),
  };
}

/** The change of each account's lamports. */
export function changesIn({ message, preBalances, postBalances }: SandboxTransaction): Map<string, bigint> {
  return new Map(message.staticAccounts.map((address, i) => [address, postBalances[i]! - preBalances[i]!]));
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}
