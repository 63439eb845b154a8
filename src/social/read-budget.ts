import ipaddr from "ipaddr.js";
import type { Logger } from "../observability/log.ts";
import type { BudgetMetrics } from "../upstream/budget/budget-metrics.ts";
import type { Shortage } from "../upstream/budget/ledger.ts";
import { TRUSTED_BLOCK, withoutRedis } from "../upstream/budget/hourly-budget.ts";
import type { Redis } from "../upstream/redis.ts";
import { toAccountName, type AccountName, type SocialAccount } from "./account.ts";
import { createReadLedger, NEW, RESERVE, SETTLE, type Admission, type Counts } from "./read-ledger.ts";
import { capacityOf, drained, isAllowed, secondsUntilAllowed } from "./read-rule.ts";
import { SocialError } from "./social-error.ts";

/** All accounts that the network returns, of which it charges for each once a day, have this many times the limit. */
const RETURNED_PER_CHARGED = 3;

/** The accounts that Redis remembers for a UTC day. Each takes about 150 bytes there: its id and its handle. */
const MAX_REMEMBERED_ACCOUNTS = 1_000_000;

/** Which accounts may be read. */
interface PaidReads {
  readonly paid: readonly AccountName[];
  /** The error of the others. */
  readonly refusal?: SocialError;
  /** Call it once for each paid one, with the answer if the network was asked because of this caller. */
  readonly onEnd: (name: AccountName, answer?: SocialAccount | Error) => void;
}

export type ReadBudget = ReturnType<typeof createReadBudget>;

/**
 * Limits the accounts that the network newly charges for to `readsPerHour` (0: unlimited), and all that it returns to
 * three times as many, over all replicas. Callers share both budgets by the rule in `read-rule.ts`. The network
 * charges for an account once per UTC day: Redis remembers which. Without Redis every account counts as new.
 * Accounts that do not exist are free.
 *
 * A replica that cannot reach Redis allows a quarter of each budget, less what it has spent itself.
 */
export function createReadBudget({
  readsPerHour,
  apiUrl,
  redis,
  metrics,
  log,
  maxRemembered = MAX_REMEMBERED_ACCOUNTS,
}: {
  readsPerHour: number;
  apiUrl: URL;
  redis?: Redis | undefined;
  metrics?: BudgetMetrics | undefined;
  log: Logger;
  maxRemembered?: number;
}) {
  const toKey = (name: string) => `v2:reads:{${apiUrl.host}}:${name}`;
  const budgetKeys = [toKey("used"), toKey("today")];
  const limits: Counts = [readsPerHour, RETURNED_PER_CHARGED * readsPerHour];
  const limitsAlone: Counts = [withoutRedis(limits[0]), withoutRedis(limits[1])];
  const ledger = createReadLedger();
  let isAlone = false;
  /** What all replicas have used, according to Redis's last answer; `at` in `performance.now()` time. */
  let usedByAll: { readonly used: Counts; readonly at: number } = { used: [0, 0], at: 0 };

  /** Reserves in Redis; undefined if that is not possible. */
  async function reserveInRedis(blocks: readonly string[], keys: readonly string[]) {
    const redisKeys = [...budgetKeys, ...blocks.map((block) => toKey(`block:${block}`))];
    const answer = await redis?.run(RESERVE, redisKeys, [...limits, ...keys]);
    if (redis) logWhetherAlone(answer !== undefined);
    if (!answer) return undefined;
    const [day, charged, returned, readCharged, readReturned, ...kinds] = answer;
    usedByAll = { used: [charged / 1000, returned / 1000], at: performance.now() };
    return {
      day,
      redisKeys,
      fits: kinds.map((kind) => kind > 0),
      areNew: kinds.map((kind) => Math.abs(kind) === NEW),
      used: usedByAll.used,
      reads: [readCharged / 1000, readReturned / 1000] as const,
    };
  }

  function logWhetherAlone(isAnswered: boolean): void {
    if (!isAnswered && !isAlone) {
      log.warn(
        { budget: "social_reads", limit: limitsAlone[0] },
        "until Redis answers, this replica allows a quarter of the budget",
      );
    }
    isAlone = !isAnswered;
  }

  /** The used part of the budget of which more is used. */
  function usedPart(): number {
    const seconds = (performance.now() - usedByAll.at) / 1000;
    const current = isAlone ? limitsAlone : limits;
    const used =
      redis && !isAlone
        ? usedByAll.used.map((count, i) => drained(limits[i]!, count, seconds))
        : ledger.used(current);
    void (redis && reserveInRedis([], []));
    return Math.max(...used.map((count, i) => Math.min(1, count / capacityOf(current[i]!))));
  }
  if (readsPerHour > 0) metrics?.watch("social_reads", usedPart);

  /** Reserves reads of the accounts for a caller's address block, or of only some if not all fit. */
  return async (names: readonly AccountName[], addressBlock: string): Promise<PaidReads> => {
    if (readsPerHour === 0 || names.length === 0) return { paid: names, onEnd: () => undefined };
    const blocks = blocksOf(addressBlock);
    const keys = names.map(({ key }) => key);
    const inRedis = await reserveInRedis(blocks, keys);
    const granted = inRedis ? names.filter((_, i) => inRedis.fits[i]) : names;
    const newKeys = new Set(inRedis ? keys.filter((_, i) => inRedis.areNew[i]) : keys);
    // Counted here too, for the time without Redis, and because Redis may have lost what was spent: no replica
    // exceeds the budgets by itself.
    const allowed = redis && !inRedis ? limitsAlone : limits;
    const own = ledger.reserve(
      allowed,
      blocks,
      granted.map(({ key }) => newKeys.has(key)),
    );

    /** Counts how reads ended: what was not read is given back, in Redis and, unless it refused them, in the ledger. */
    function settle(reads: readonly { name: AccountName; answer?: unknown }[], inLedger = true) {
      const back: [number, number] = [0, 0];
      const accounts: (string | number)[] = [];
      for (const { name, answer } of reads) {
        const charged = newKeys.has(name.key) ? 1 : 0;
        if (isAccount(answer)) {
          accounts.push(charged, answer.id, toAccountName("handle", answer.handle.toLowerCase()).key);
        } else if (!isUnreadable(answer)) {
          back[0] += charged;
          back[1]++;
        }
      }
      if (inLedger) ledger.giveBack(blocks, back);
      // Not retried: a lost return makes the budgets too small, but a repeated one would make them too large.
      if (inRedis && (back[1] > 0 || accounts.length > 0))
        void redis?.run(SETTLE, inRedis.redisKeys, [inRedis.day, 2 * maxRemembered, ...back, ...accounts]);
    }

    const paid = granted.filter((_, i) => own.fits[i]);
    const refusedHere = granted.filter((_, i) => !own.fits[i]);
    settle(
      refusedHere.map((name) => ({ name })),
      false,
    );
    let ended: { name: AccountName; answer: unknown }[] = [];
    const onEnd: PaidReads["onEnd"] = (name, answer) => {
      // Most reads of a request end at the same time: settle them together.
      if (ended.push({ name, answer }) > 1) return;
      queueMicrotask(() => {
        settle(ended);
        ended = [];
      });
    };
    if (paid.length === names.length) return { paid, onEnd };
    const refused = {
      isNew: newKeys.has(names.find((name) => !paid.includes(name))!.key),
      isTrusted: blocks.length === 0,
    };
    const shortage =
      inRedis && granted.length < names.length
        ? toShortage(limits, inRedis, refused)
        : toShortage(allowed, own, refused);
    metrics?.refused("social_reads", shortage.scope, names.length - paid.length);
    return { paid, onEnd, refusal: new SocialError({ kind: "budget-used", ...shortage }) };
  };
}

/** Why a read does not fit, and how long. */
function toShortage(
  limits: Counts,
  { used, reads }: Omit<Admission, "fits">,
  { isNew, isTrusted }: { isNew: boolean; isTrusted: boolean },
): Required<Shortage> {
  const refusing = (isNew ? [0, 1] : [1]).filter(
    (i) => !isAllowed(limits[i]!, used[i]!, reads[i]!, isTrusted),
  );
  const isForAll = refusing.some((i) => !isAllowed(limits[i]!, used[i]!, 0));
  const waits = refusing.map((i) => secondsUntilAllowed(limits[i]!, used[i]!, reads[i]!, isTrusted));
  return { scope: isForAll ? "SERVICE" : "CALLER", retryAfterSeconds: Math.max(1, ...waits) };
}

/** A caller's block, and for an IPv6 /48 also the /32 around it. None for trusted callers. */
function blocksOf(addressBlock: string): string[] {
  if (addressBlock === TRUSTED_BLOCK) return [];
  if (!addressBlock.endsWith("/48")) return [addressBlock];
  const wide = ipaddr.IPv6.networkAddressFromCIDR(addressBlock.replace(/\/48$/, "/32"));
  return [addressBlock, `${wide.toString()}/32`];
}

const isAccount = (answer: unknown): answer is SocialAccount =>
  answer !== undefined && !(answer instanceof Error);

/** The network charges for each account that it returns, readable or not. */
const isUnreadable = (answer: unknown): boolean =>
  answer instanceof SocialError && answer.failure.kind === "unreadable";
