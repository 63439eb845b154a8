import { createLruCache } from "../../store/lru-cache.ts";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { parseJson } from "../../contract/parse-json.ts";
import type { Redis } from "../../store/redis.ts";
import { redisKeys } from "../../store/redis-keys.ts";
import { afterFailure, backoffLeftMs, type Backoff } from "../../time/backoff.ts";
import { CollectError } from "../collect-error.ts";
import { untilAborted, withDeadline } from "../rpc/deadline.ts";
import { toLamports, type Lamports } from "../lamports.ts";
import {
  KEEP_BACKOFF,
  LEASE_MS,
  NO_BACKOFF,
  NOT_LANDED,
  REMEMBERED_MS,
  SETTLE,
  SIGNED_MS,
  STORE,
  TAKE,
  WITHDRAW,
} from "./claim-scripts.ts";
import { addMs, monotonicNow, type MonotonicTime, msUntil } from "../../time/monotonic.ts";

const STORED_TRANSACTION = z.object({
  base64: z.string(),
  signature: z.string(),
  lastValidBlockHeight: z.int(),
  /** Whether the transaction collects for several accounts. */
  isShared: z.boolean().optional(),
  /** The mints of the swept coins, each once. */
  sweptMints: z.array(z.string()).readonly().optional(),
});
/**
 * A signed transaction as stored in Redis, with all that another replica needs to send and confirm
 * it.
 */
export type StoredTransaction = Readonly<z.infer<typeof STORED_TRANSACTION>>;

const LAMPORTS = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform((text): Lamports => toLamports(BigInt(text)));
const LAST_COLLECT = z.object({
  collected: LAMPORTS,
  /** The withdrawable lamports at the address right after the collect. */
  newBalance: LAMPORTS,
  signature: z.string(),
  /** When the transaction's block was produced. Stored in ms since 1970. */
  at: z.int().transform((ms) => new Date(ms)),
});
/** What the last successful collect of an account moved. */
export type LastCollect = Readonly<z.output<typeof LAST_COLLECT>>;

/** What later collects of an address need to know about a landed transaction. */
export interface Landing {
  /** 0 if unknown. */
  readonly slot: number;
  /** What the transaction moved to the account, if anything. */
  collect?: LastCollect;
  /**
   * True starts or doubles the account's backoff. False ends the backoff. Undefined changes
   * nothing.
   */
  hasFailed?: boolean;
}

/**
 * Either the right to sign the next transaction for an address, or a transaction that another
 * collect has signed.
 */
export interface Claim {
  /**
   * Set if another collect has signed: follow this transaction, settle the claim, and take a new
   * claim.
   */
  readonly openTransaction: StoredTransaction | undefined;
  /**
   * Whether `openTransaction` is certainly older than this claim: the first read returned it, or
   * another collect of this process knows its outcome. False proves nothing, because a slow Redis
   * can store a transaction late.
   */
  readonly isEarlier: boolean;
  /** The slot in which the address's last transaction landed; 0 if unknown. */
  readonly landedSlot: number;
  /** Returns the account's last known collect; undefined if there was none in the last hour. */
  lastCollect(): LastCollect | undefined;
  /**
   * Returns for how many more ms the account backs off after failures on the chain; 0 without a
   * backoff.
   */
  backsOffMs(): number;
  /**
   * Call before sending. Returns false if another replica has taken the claim: do not send then.
   */
  store(transaction: StoredTransaction): Promise<boolean>;
  /**
   * Frees the claim of an unsent transaction, or returns false if another replica may have read the
   * transaction.
   */
  withdraw(): Promise<boolean>;
  /**
   * Frees the claim. Call `settle` when nothing was signed, or after any outcome, also `unknown`.
   * If the transaction landed, pass `landing`. A second call can add what the first did not know.
   */
  settle(landing?: Landing): void;
}

/** A collect of this process that holds a claim. */
interface Holder {
  transaction: StoredTransaction | undefined;
  readonly settled: PromiseWithResolvers<unknown>;
}

/**
 * Called while another collect holds the claim. `transaction` returns that collect's transaction,
 * once known.
 */
export type OnWait = (transaction: () => StoredTransaction | undefined) => void;

/** The claim survives one failed renewal. */
const RENEW_MS = LEASE_MS / 3;
const POLL_MS = 100;
const BACKOFF = { firstMs: 60_000, longestMs: 3_600_000 };
/**
 * An entry takes about 500 bytes. With Redis, entries matter only for collects that ended while
 * Redis was down.
 */
const MAX_COLLECTS = 10_000;
/** Evicting an entry takes this many failed transactions, and each uses up fee budget. */
const MAX_BACKOFFS = 50_000;

const toText = ({ collected, newBalance, signature, at }: LastCollect): string =>
  JSON.stringify({
    collected: String(collected),
    newBalance: String(newBalance),
    signature,
    at: at.getTime(),
  });
const newestOf = (a: LastCollect | undefined, b: LastCollect | undefined) =>
  a && !(b && b.at > a.at) ? a : b;
/** Returns for how many more ms to keep a collect; 0 or less once it is too old. */
const timeToLive = ({ at }: LastCollect) => at.getTime() + REMEMBERED_MS - Date.now();

export type Claims = ReturnType<typeof createClaims>;

/**
 * Lets one collect at a time sign a transaction for an address: an account's, or a sharing
 * config's, because one distribution pays all its shareholders. Remembers the address's last slot,
 * last collect and backoff.
 *
 * A collect takes the claim with a random token, signs, and stores the transaction in the claim
 * before the first send. A replica that finds the claim held waits for the transaction, then sends
 * and confirms the transaction itself: the signer may be dead. The holder renews a claim without a
 * transaction every 5 s; 15 s after the last renewal the claim expires. A signer that has lost the
 * claim finds another token when it stores, and does not send. Once a transaction is sent, only its
 * outcome (landed, expired or unknown) settles the claim. Any replica may settle the claim, but
 * only with the token that it read, so that it never frees a later claim. Within a process,
 * collects wait for the holder.
 *
 * Without Redis, or while Redis is down, a claim binds only this process. The money is still safe,
 * because fees cannot move twice: two replicas that collect an account at the same time only waste
 * one transaction fee.
 */
export function createClaims({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  /** The claims that collects of this process hold, by address. */
  const holders = new Map<string, Holder>();
  const collects = createLruCache<string, LastCollect>(MAX_COLLECTS);
  const backoffs = createLruCache<string, Backoff>(MAX_BACKOFFS);

  /** Waits while another replica prepares a transaction. Returns undefined when Redis is down. */
  async function takeInRedis(
    keys: Readonly<Record<"claim" | "known", string>>,
    newToken: string,
    endsAt: MonotonicTime,
    onWait: OnWait,
  ) {
    let awaitedToken = "";
    for (;;) {
      const answer = await redis?.run(TAKE, { ...keys, newToken, awaitedToken });
      if (!answer) return undefined;
      const [holder, transaction] = answer;
      if (holder === newToken || transaction !== "")
        return { answer, isEarlier: awaitedToken === "" };
      if (monotonicNow() > endsAt) throw new CollectError({ kind: "lease-not-acquired" });
      if (awaitedToken === "") onWait(() => undefined);
      awaitedToken = holder;
      await sleep(POLL_MS);
    }
  }

  function rememberCollect(address: string, collect: LastCollect): void {
    const newest = newestOf(collect, collects.get(address))!;
    collects.set(address, newest, { ttl: Math.max(1, timeToLive(newest)) });
  }

  function rememberBackoff(address: string, backoff: Backoff | undefined): void {
    if (!backoff) backoffs.delete(address);
    else backoffs.set(address, backoff, { ttl: backoff.waitMs + REMEMBERED_MS });
  }

  function newestCollect(address: string, text: string): LastCollect | undefined {
    const newest = newestOf(LAST_COLLECT.safeParse(parseJson(text)).data, collects.get(address));
    return newest && timeToLive(newest) > 0 ? newest : undefined;
  }

  return {
    /**
     * Takes the claim of this address. If another collect must finish first, calls `onWait`, then
     * waits; if that collect has signed nothing, until `endsAt` at the latest. Throws {@link
     * CollectError} `distribution-in-flight`, `lease-not-acquired` or
     * `stored-transaction-unreadable`.
     */
    async take(
      address: string,
      endsAt: MonotonicTime,
      onWait: OnWait = () => undefined,
    ): Promise<Claim> {
      for (let other; (other = holders.get(address));) {
        const holder = other;
        onWait(() => holder.transaction);
        await waitFor(holder, endsAt);
        if (holder.transaction) return toFollow(holder.transaction);
      }
      const held: Holder = { transaction: undefined, settled: Promise.withResolvers() };
      holders.set(address, held);
      const free = () => {
        if (holders.get(address) === held) holders.delete(address);
        held.settled.resolve(undefined);
      };
      const keys = {
        claim: redisKeys.claim(feePayer, address),
        known: redisKeys.known(feePayer, address),
      };
      const token = randomUUID();
      const taken = await takeInRedis(keys, token, endsAt, onWait).catch((error: unknown) => {
        free();
        throw error;
      });
      const [holder, transaction, landedSlot, collect, waitMs, leftMs] =
        taken?.answer ?? ([token, "", 0, "", 0, 0] as const);
      const sharedBackoff =
        waitMs > 0 ? { waitMs, endsAt: addMs(monotonicNow(), leftMs) } : undefined;
      const lastBackoff = taken ? sharedBackoff : backoffs.get(address);
      let hasTransaction = holder !== token;
      if (hasTransaction) free();
      const renew = () =>
        void redis?.run(STORE, { ...keys, token, transaction: "", ttlMs: LEASE_MS });
      const renewal = hasTransaction ? undefined : setInterval(renew, RENEW_MS).unref();

      function settle(landing?: Landing): void {
        clearInterval(renewal);
        const { slot = NOT_LANDED, collect, hasFailed } = landing ?? {};
        // Computed from the backoff that was read with the claim: all replicas that see the same
        // failure then write the same backoff.
        const backoff = hasFailed ? afterFailure(lastBackoff, BACKOFF) : undefined;
        if (hasFailed !== undefined) rememberBackoff(address, backoff);
        if (collect) rememberCollect(address, collect);
        const collectTtlMs = collect ? timeToLive(collect) : 0;
        const settled = {
          token: holder,
          slot,
          collect: collect && collectTtlMs > 0 ? toText(collect) : "",
          collectAt: collect?.at.getTime() ?? 0,
          collectTtlMs,
          backoffMs: hasFailed === undefined ? KEEP_BACKOFF : (backoff?.waitMs ?? NO_BACKOFF),
        };
        // Without a transaction, the script is needed only until the claim expires and the collect
        // is too old.
        const keptMs = hasTransaction ? Infinity : Math.max(LEASE_MS, collectTtlMs);
        redis?.runLater(SETTLE, { ...keys, ...settled }, keptMs);
        free();
      }
      const open = STORED_TRANSACTION.safeParse(parseJson(transaction));
      if (holder !== token && !open.success) {
        settle();
        throw new CollectError({ kind: "stored-transaction-unreadable" }, open.error);
      }
      return {
        openTransaction: open.data,
        isEarlier: taken?.isEarlier ?? false,
        landedSlot,
        lastCollect: () => newestCollect(address, collect),
        backsOffMs: () => backoffLeftMs(lastBackoff),
        async store(signed) {
          clearInterval(renewal);
          hasTransaction = true;
          const call = { ...keys, token, transaction: JSON.stringify(signed), ttlMs: SIGNED_MS };
          const answer = await redis?.run(STORE, call);
          // Redis is down: collects go on without Redis, and the transaction is stored once Redis
          // is back.
          if (answer === undefined) redis?.runLater(STORE, call);
          if (answer !== 0) held.transaction = signed;
          return answer !== 0;
        },
        async withdraw() {
          const isWithdrawn = (await redis?.run(WITHDRAW, { ...keys, token })) === 1;
          if (isWithdrawn) {
            held.transaction = undefined;
            free();
          }
          return isWithdrawn;
        },
        settle,
      };
    },
  };
}

/**
 * Stores a transaction in all claims. `held`: a list of claims for each account. Returns for each
 * account whether its collect must send the transaction. If a claim is lost to another replica,
 * withdraws the transaction from the other claims. A collect must then send only if one of its
 * withdrawals fails: another replica may have the transaction.
 */
export async function storeUnderAll(
  held: readonly (readonly Claim[])[],
  transaction: StoredTransaction,
): Promise<boolean[]> {
  const areStored = await Promise.all(
    held.map((ofAccount) => Promise.all(ofAccount.map((claim) => claim.store(transaction)))),
  );
  if (!areStored.flat().includes(false)) return held.map(() => true);
  const areFree = await Promise.all(
    held.map((ofAccount, i) =>
      Promise.all(ofAccount.map(async (claim, j) => !areStored[i]![j] || claim.withdraw())),
    ),
  );
  return areFree.map((ofAccount) => ofAccount.includes(false));
}

async function waitFor(holder: Holder, endsAt: MonotonicTime): Promise<void> {
  const leftMs = Math.max(0, msUntil(endsAt));
  await withDeadline(leftMs, (deadline) => untilAborted(holder.settled.promise, deadline)).catch(
    () => {
      if (!holder.transaction) throw new CollectError({ kind: "distribution-in-flight" });
      return holder.settled.promise;
    },
  );
}

/** Returns a claim with a transaction whose outcome another collect of this process has found. */
function toFollow(openTransaction: StoredTransaction): Claim {
  return {
    openTransaction,
    isEarlier: true,
    landedSlot: 0,
    lastCollect: () => undefined,
    backsOffMs: () => 0,
    store: () => Promise.resolve(false),
    withdraw: () => Promise.resolve(false),
    settle: () => undefined,
  };
}
