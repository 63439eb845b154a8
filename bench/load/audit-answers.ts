import { formatSol, toLamports } from "../../src/chain/lamports.ts";
import type { CollectCall } from "./collects.ts";
import type { Problems } from "./problems.ts";
import { overlaps } from "./replica.ts";
import type { System } from "./system.ts";
import { SAYS_NOTHING_MOVED, SAYS_NOTHING_SENT, signatureIn } from "./wording.ts";

/** The longest after a collect that a stale endpoint may say that it has not landed. */
const STALE_MS = 90_000;
/** The other replica's transaction may be sent while a caller's answer says that none was. */
const RACE_MS = 1_000;

type Success = CollectCall & { readonly answer: { readonly kind: "collected" } };
const isSuccess = (call: CollectCall): call is Success => call.answer.kind === "collected";

/** Checks what collects answered, and counts what they said. */
export function checkAnswers(system: System, calls: readonly CollectCall[], problems: Problems) {
  const { timeline, sent, replicas, sandbox, expiredAt } = system;
  const { chain } = sandbox;
  const callsOf = Map.groupBy(calls, ({ account }) => account.id);
  const successes = calls.filter(isSuccess);
  const reportsOf = Map.groupBy(successes, ({ answer }) => answer.txSignature);
  const counts = { successes: successes.length, nothingMoved: 0, nothingSent: 0, unknown: 0 };

  for (const call of successes) {
    checkAmounts(call);
    if (!isCurrent(call)) {
      const { account, start, answer, replica } = call;
      problems.add(
        "a success from before the request",
        `${account.handle} at ${start.at} at replica ${replica}: ${answer.txSignature} landed at ${timeline.landedAt(answer.txSignature)}; all answers that name it: ${describeAnswers(answer.txSignature)}`,
      );
    }
  }
  for (const call of calls) if (call.answer.kind === "error") checkMessage(call, call.answer.message);
  return counts;

  /** Who received answers that name a transaction, and when. */
  function describeAnswers(signature: string): string {
    const named = calls.filter(({ answer }) => JSON.stringify(answer).includes(signature));
    return named
      .map(
        ({ account, answer, replica, start, end }) =>
          `${answer.kind} for ${account.handle} at replica ${replica} from ${start.at} to ${end}`,
      )
      .join(", ");
  }

  function checkAmounts({ account, answer: { txSignature, collected, newBalance } }: Success): void {
    const landed = chain.landed(txSignature);
    const index = landed?.message.staticAccounts.findIndex((key) => key === account.address) ?? -1;
    const before = landed?.preBalances[index];
    const after = landed?.postBalances[index];
    if (before === undefined || after === undefined || landed?.err !== null)
      problems.add("a success without a transaction", `${txSignature} did not collect for ${account.handle}`);
    else if (collected !== sol(after - before) || newBalance !== sol(after))
      problems.add(
        "a success with wrong amounts",
        `${txSignature}: ${collected} and ${newBalance} reported, ${after - before} and ${after} on the chain`,
      );
  }

  /** Whether a success belongs to the request: its transaction was in flight then, as far as nodes could say. */
  function isCurrent({ account, replica, start, end, mints, answer: { txSignature } }: Success): boolean {
    const landedAt = timeline.landedAt(txSignature) ?? 0;
    if (landedAt >= start.at) return true;
    const reports = reportsOf.get(txSignature)!;
    const firstOf = (some: readonly Success[]) => Math.min(...some.map((report) => report.end));
    const ofCollect = reports.filter((each) => each.replica === replica && each.account === account);
    const reportedAt = firstOf(reports);
    const ranThen = () =>
      callsOf
        .get(account.id)!
        .some((call) => call.replica === replica && call.start.at <= reportedAt && reportedAt <= call.end);
    // The request joined a collect of the account, which followed the transaction before anyone reported it. That
    // collect ended when the replica first reported it for this account.
    if (start.at <= reportedAt || (start.at <= firstOf(ofCollect) && ranThen())) return true;
    const meanwhile = timeline
      .statesOf(account.id)
      .slice(timeline.indexAt(account.id, start))
      .filter(({ at }) => at <= end);
    // A stale endpoint does not know a transaction that has landed.
    return (
      overlaps(system.stale, landedAt, start.at) &&
      landedAt >= start.at - STALE_MS &&
      meanwhile.some((state) => timeline.isNothing(state, mints))
    );
  }

  function checkMessage(call: CollectCall, message: string): void {
    const signature = signatureIn(message);
    const named = sent.get(signature ?? "");
    if (named && !named.accounts.includes(call.account))
      problems.add("an error that names another account's transaction", `${call.account.handle}: ${message}`);

    if (SAYS_NOTHING_MOVED.test(message)) {
      counts.nothingMoved++;
      if (signature === undefined) checkNothingSent(call, message);
      else if (chain.landed(signature)?.err === null)
        problems.add(
          `"nothing was moved", although the transaction landed`,
          `${call.account.handle}: ${message}`,
        );
    } else if (signature !== undefined) counts.unknown++;
    if (SAYS_NOTHING_SENT.test(message)) {
      counts.nothingSent++;
      checkNothingSent(call, message);
    }
  }

  /**
   * No transaction that the replica sent, or can know of from the other, may be open at the end of the request. But
   * the next collect may have begun, for callers who still wait, or who got another answer.
   */
  function checkNothingSent({ account, replica, start, end }: CollectCall, message: string): void {
    const open = [...sent.values()].find((transaction) => {
      const { signature, blockhash, at } = transaction;
      const endsAt = timeline.landedAt(signature) ?? expiredAt(blockhash);
      if (!transaction.vaults.includes(account.creatorVault) || at > end || endsAt <= end) return false;
      const isNext = callsOf
        .get(account.id)!
        .some(
          (other) =>
            other.replica === replica &&
            other.start.at <= at &&
            other.end >= end &&
            !(other.answer.kind === "error" && other.answer.message === message),
        );
      if (transaction.replica === replica) return !isNext && !overlaps(replicas[replica]!.down, at, end);
      const since = Math.min(at, start.at);
      return at < end - RACE_MS && !replicas.some(({ withoutRedis }) => overlaps(withoutRedis, since, end));
    });
    if (open)
      problems.add(
        `"no transaction was sent", although one was`,
        `${account.handle} from ${start.at} to ${end} at replica ${replica}: ${open.signature} by replica ${open.replica} at ${open.at}: ${message}`,
      );
  }
}

const sol = (lamports: bigint) => formatSol(toLamports(lamports));
