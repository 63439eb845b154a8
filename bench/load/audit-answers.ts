import { formatSol, toLamports } from "../../src/chain/primitives/lamports.ts";
import type { SandboxTransaction } from "../../src/sandbox/chain/chain.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import type { CollectCall } from "./collects.ts";
import type { Problems } from "./problems.ts";
import { overlaps } from "./replica.ts";
import type { System } from "./system.ts";
import {
  SAYS_NOTHING_MOVED,
  SAYS_NOTHING_SENT,
  SAYS_WITHOUT_EFFECT,
  signatureIn,
} from "./wording.ts";

/** The other replica may send a transaction this long before an answer says that none was sent. */
const RACE_MS = 1_000;

type Success = CollectCall & { readonly answer: { readonly kind: "collected" } };
const isSuccess = (call: CollectCall): call is Success => call.answer.kind === "collected";

/** Checks the answers of all collects, and counts them by what they report. */
export function checkAnswers(system: System, calls: readonly CollectCall[], problems: Problems) {
  const { timeline, sent, replicas, sandbox, endpoints, stale, expiredAt } = system;
  const { chain } = sandbox;
  const callsOf = Map.groupBy(calls, ({ account }) => account.id);
  const successes = calls.filter(isSuccess);
  const counts = {
    successes: successes.length,
    withoutEffect: 0,
    nothingMoved: 0,
    nothingSent: 0,
    unknown: 0,
  };

  for (const call of successes) {
    checkAmounts(call);
    if (!isCurrent(call)) {
      const { account, start, answer, replica } = call;
      problems.add(
        "a success from before the request",
        `${account.handle} at ${start.at} at replica ${replica}: ${answer.txSignature} landed at ${timeline.landedAt(answer.txSignature)}`,
        start.at,
      );
    }
  }
  for (const call of calls)
    if (call.answer.kind === "error") checkMessage(call, call.answer.message);
  return counts;

  function checkAmounts({
    account,
    end,
    replica,
    answer: { txSignature, collected, newBalance },
  }: Success): void {
    const landed = chain.landed(txSignature);
    const [before, after] = landed ? balancesIn(landed, account) : [];
    if (before === undefined || after === undefined || landed?.err !== null)
      problems.add(
        "a success without a transaction",
        `${txSignature} did not collect for ${account.handle}, reported by replica ${replica}`,
        end,
      );
    else if (collected !== sol(after - before) || newBalance !== sol(after))
      problems.add(
        "a success with wrong amounts",
        `${txSignature}: ${collected} and ${newBalance} reported by replica ${replica}, ${after - before} and ${after} on the chain`,
        end,
      );
  }

  /**
   * Whether the transaction landed above the finalized slot at the request's start. Also true if
   * only stale endpoints answered the replica, because it could not know what had landed.
   */
  function isCurrent({ replica, start, end, answer: { txSignature } }: Success): boolean {
    const { slot = 0 } = chain.landed(txSignature) ?? {};
    const isToldTheTruth = endpoints.some((endpoint) =>
      endpoint.wasHealthy(replica, start.at, end),
    );
    return slot > start.finalizedSlot || (overlaps(stale, start.at, end) && !isToldTheTruth);
  }

  function checkMessage(call: CollectCall, message: string): void {
    const signature = signatureIn(message);
    const named = sent.get(signature ?? "");
    if (named && !named.accounts.includes(call.account))
      problems.add(
        "an error that names another account's transaction",
        `${call.account.handle}: ${message}`,
      );

    if (SAYS_WITHOUT_EFFECT.test(message)) {
      counts.withoutEffect++;
      const landed = chain.landed(signature ?? "");
      const [before, after] = landed ? balancesIn(landed, call.account) : [];
      if (landed?.err !== null || before !== after)
        problems.add(
          `"landed, but moved nothing", although that is not true`,
          `${call.account.handle}: ${message}`,
        );
    } else if (SAYS_NOTHING_MOVED.test(message)) {
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
   * Checks that no transaction was open at the end of the request. Ignores transactions that this
   * replica neither sent nor could know of, and those of another collect, whose callers waited when
   * it was sent, and still wait or got another answer.
   */
  function checkNothingSent({ account, replica, start, end }: CollectCall, message: string): void {
    const open = [...sent.values()].find((transaction) => {
      const { signature, blockhash, at } = transaction;
      const endsAt = timeline.landedAt(signature) ?? expiredAt(blockhash);
      if (!transaction.vaults.includes(account.creatorVault) || at > end || endsAt <= end)
        return false;
      const isOfOther = callsOf
        .get(account.id)!
        .some(
          (other) =>
            other.replica === replica &&
            other.start.at <= at &&
            other.end >= at &&
            !(other.answer.kind === "error" && other.answer.message === message),
        );
      if (transaction.replica === replica)
        return !isOfOther && !overlaps(replicas[replica]!.down, at, end);
      const since = Math.min(at, start.at);
      return (
        at < end - RACE_MS &&
        !replicas.some(({ withoutRedis }) => overlaps(withoutRedis, since, end))
      );
    });
    if (open)
      problems.add(
        `"no transaction was sent", although one was`,
        `${account.handle} from ${start.at} to ${end} at replica ${replica}: ${open.signature} by replica ${open.replica} at ${open.at}: ${message}`,
      );
  }
}

/** What an account's address held before and after a transaction. */
function balancesIn(
  { message, preBalances, postBalances }: SandboxTransaction,
  { address }: SandboxAccount,
) {
  const index = message.accountKeys.findIndex((key) => key === address);
  return [preBalances[index], postBalances[index]];
}

const sol = (lamports: bigint) => formatSol(toLamports(lamports));
