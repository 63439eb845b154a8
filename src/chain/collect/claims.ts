import { createLruCache } from "../../store/lru-cache.ts";
import { randomInt } from "node:crypto";
import { z } from "zod";
import { parseJson } from "../../contract/parse-json.ts";
import type { Redis } from "../../store/redis.ts";
import { redisKeys } from "../../store/redis-keys.ts";
import { CollectError } from "../errors/collect-error.ts";
import { toLamports, type Lamports } from "../primitives/lamports.ts";
import {
  KEEP_COLLECT,
  KEEP_PENDING,
  LEASE_MS,
  MAX_COLLECTS,
  NOT_LANDED,
  READ_COLLECTS,
  REMEMBERED_MS,
  SETTLE,
  STORE,
  TAKE,
  type Taken,
} from "./claim-scripts.ts";

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

/** What {@link Claims.look} and {@link Claims.take} find. */
export interface Claim {
  /** The slot in which the address's last transaction landed; 0 if unknown. */
  readonly landedSlot: number;
  /** How many transactions the unit has had; random while Redis is down. The next one's differs. */
  readonly count: number;
  /**
   * A distribution that was signed for this account and has no outcome, because its replica died.
   */
  readonly pending: StoredTransaction | undefined;
  /** Set if another collect has signed: follow this transaction, and settle the claim. */
  readonly openTransaction: StoredTransaction | undefined;
  /**
   * Call before sending. Returns false if another replica has taken the claim: do not send then.
   */
  store(transaction: StoredTransaction): Promise<boolean>;
  /**
   * Frees the claim. Call when nothing was signed, or after any outcome, also `unknown`. `slot`: of
   * the landing, 0 if unknown.
   */
  settle(landing?: { readonly slot: number }): void;
}

/** The claim survives one failed renewal. */
const RENEW_MS = LEASE_MS / 3;
/** Two replicas that sign while Redis is down hardly count alike. */
const MAX_RANDOM_COUNT = 1_000;
/**
 * A collect takes about 500 bytes. With Redis, they matter only for collects that ended while Redis
 * was down.
 */
const MAX_LOCAL_COLLECTS = 10_000;

const toText = ({ collected: collectedAmount, newBalance, signature, at }: LastCollect): string =>
  JSON.stringify({
    collected: String(collectedAmount),
    newBalance: String(newBalance),
    signature,
    at: at.getTime(),
  });
/** Returns for how many more ms to keep a collect; 0 or less once it is too old. */
const timeToLive = ({ at }: LastCollect) => at.getTime() + REMEMBERED_MS - Date.now();

/** Returns the collects of the last hour that are kept: the newest first, each signature once. */
function newestOf(collects: readonly (LastCollect | undefined)[]): LastCollect[] {
  const newest = collects
    .flatMap((each) => (each && timeToLive(each) > 0 ? each : []))
    .toSorted((a, b) => b.at.getTime() - a.at.getTime());
  const bySignature = Map.groupBy(newest, ({ signature }) => signature);
  return [...bySignature.values()].flatMap(([first]) => first ?? []).slice(0, MAX_COLLECTS);
}

export type Claims = ReturnType<typeof createClaims>;

/**
 * Lets one collect at a time sign a transaction for a unit. A unit's address is an account's, or a
 * sharing config's, because one distribution pays all its shareholders. Within this process, a unit
 * has one collect at a time; claims keep other replicas out. No collect takes a claim while it
 * holds another. Also remembers the address's last slot and last collect.
 *
 * A collect takes the claim with a random token, signs, and stores the transaction in the claim
 * before the first send. A replica that finds the claim held waits for the transaction, then sends
 * and confirms the transaction itself: the signer may be dead. The first replica that waits is next
 * when the claim is free. The holder renews a claim without a transaction every 5 s; 15 s after the
 * last renewal the claim expires. A signer that has lost the claim finds another token when it
 * stores, and does not send. Once a transaction is sent, only its outcome (landed, expired or
 * unknown) settles the claim. Any replica may settle the claim, but only with the token that it
 * read, so that it never frees a later claim.
 *
 * Without Redis, or while Redis is down, a claim binds only this process. The money is still safe,
 * because fees cannot move twice: two replicas that collect an account at the same time only waste
 * one transaction fee.
 */
export function createClaims({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  const collects = createLruCache<string, readonly LastCollect[]>(MAX_LOCAL_COLLECTS, {
    sizeCalculation: ({ length }) => length,
  });
  const keysOf = (address: string) => ({
    claim: redisKeys.claim(feePayer, address),
    known: redisKeys.known(feePayer, address),
  });

  /**
   * `token`: of the collect that takes the claim; "" to look only. `answer`: undefined without
   * Redis.
   */
  function toClaim(address: string, token: string, answer: Taken | undefined): Claim {
    const keys = keysOf(address);
    const holder = answer?.token ?? token;
    const transaction = answer?.transaction ?? "";
    const open = STORED_TRANSACTION.safeParse(parseJson(transaction));
    const isHolder = token !== "" && holder === token;
    const renew = () => void redis?.run(STORE, { ...keys, token, transaction: "" });
    const renewal = isHolder ? setInterval(renew, RENEW_MS).unref() : undefined;
    let hasTransaction = !isHolder;

    function settle({ slot }: { readonly slot: number } = { slot: NOT_LANDED }): void {
      clearInterval(renewal);
      // Without a transaction, the script is needed only until the claim expires.
      redis?.runLater(
        SETTLE,
        { ...keys, token: holder, slot },
        hasTransaction ? Infinity : LEASE_MS,
      );
    }

    if (transaction !== "" && !open.success) {
      settle();
      throw new CollectError({ kind: "stored-transaction-unreadable" }, open.error);
    }
    return {
      openTransaction: open.data,
      landedSlot: answer?.slot ?? 0,
      count: answer?.count ?? randomInt(MAX_RANDOM_COUNT),
      pending: STORED_TRANSACTION.safeParse(parseJson(answer?.pending ?? "")).data,
      async store(signedTransaction) {
        clearInterval(renewal);
        hasTransaction = true;
        const text = JSON.stringify(signedTransaction);
        const call = { ...keys, token, transaction: text };
        const result = await redis?.run(STORE, call);
        // Redis is down: collects go on without Redis, and the transaction is stored once Redis
        // is back.
        if (result === undefined) redis?.runLater(STORE, call);
        return result !== 0;
      },
      settle,
    };
  }

  const askRedis = async (address: string, newToken: string, awaitedToken: string) =>
    redis?.run(TAKE, { ...keysOf(address), newToken, awaitedToken });

  return {
    /**
     * Returns what is known about an address, and the transaction in flight, without taking the
     * claim. Throws {@link CollectError} `stored-transaction-unreadable`.
     */
    look: async (address: string): Promise<Claim> =>
      toClaim(address, "", await askRedis(address, "", "")),

    /**
     * Takes the claim of this address for `newToken`; also returned with another collect's
     * transaction. If another replica must sign first, returns its token: the next try awaits it.
     * Throws {@link CollectError} `stored-transaction-unreadable`.
     */
    async take(
      address: string,
      newToken: string,
      awaitedToken = "",
    ): Promise<Claim | { readonly holder: string }> {
      const answer = await askRedis(address, newToken, awaitedToken);
      const { token: holder, transaction } = answer ?? { token: newToken, transaction: "" };
      const isFree = holder === newToken || transaction !== "";
      return isFree ? toClaim(address, newToken, answer) : { holder };
    },

    /**
     * Keeps a distribution for an account that asked for it, until {@link keepCollect}. Call before
     * sending.
     */
    async keepPending(address: string, transaction: StoredTransaction): Promise<void> {
      const { known: knownKey } = keysOf(address);
      await redis?.run(KEEP_PENDING, { known: knownKey, transaction: JSON.stringify(transaction) });
    },

    /** Returns the account's newest collects of the last hour, the newest first. */
    async readCollects(address: string): Promise<readonly LastCollect[]> {
      const { known: knownKey } = keysOf(address);
      const texts = (await redis?.run(READ_COLLECTS, { known: knownKey })) ?? [];
      const kept = texts.flatMap(parseJson);
      return newestOf([
        ...(collects.get(address) ?? []),
        ...kept.flatMap((each) => LAST_COLLECT.safeParse(each).data ?? []),
      ]);
    },

    /** Keeps what a transaction moved to an account, if anything, for an hour from its block. */
    keepCollect(address: string, signature: string, collect: LastCollect | undefined): void {
      const newest = newestOf([collect, ...(collects.get(address) ?? [])]);
      if (newest[0]) collects.set(address, newest, { ttl: Math.max(1, timeToLive(newest[0])) });
      const ttlMs = collect ? timeToLive(collect) : 0;
      const call = {
        ...{ known: keysOf(address).known, signature, ttlMs },
        collect: collect && ttlMs > 0 ? toText(collect) : "",
        collectAt: collect?.at.getTime() ?? 0,
      };
      redis?.runLater(KEEP_COLLECT, call, Math.max(LEASE_MS, ttlMs));
    },
  };
}
