import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { parseJson } from "../../upstream/parse-json.ts";
import type { Redis, Script } from "../../upstream/redis.ts";

/** A signed transaction as it is kept: all that is needed to bring it into the chain and to learn its fate. */
export interface KeptTransaction {
  readonly base64: string;
  readonly signature: string;
  readonly lastValidBlockHeight: number;
}

/** The right to sign an account's next transaction, or the news that another replica has signed it. */
export interface Claim {
  /** Its fate must be known before anything else is signed. */
  readonly signedElsewhere: KeptTransaction | undefined;
  /** The slot in which the account's last transaction landed, when that was a moment ago; else 0. */
  readonly landedSlot: number;
  /**
   * Keeps a transaction for others to find; it may be sent only afterwards. False when another replica
   * has claimed the account meanwhile: then it must not be sent.
   */
  keep(transaction: KeptTransaction): Promise<boolean>;
  /** Nothing was signed, or its fate is known: `landedSlot`, or never. */
  end(landedSlot?: number): void;
}

/** For so long a replica that died before it signed keeps others from collecting the account. */
const CLAIM_MS = 15_000;
/**
 * A signed transaction is kept until its fate is known. Its blockhash does not age while the cluster stands
 * still, which it has done for the better part of a day.
 */
const SIGNED_MS = 7 * 24 * 3_600_000;
/** For so long others find a transaction whose fate is known, and slow nodes may not have seen it. */
const LANDED_MS = 60_000;
const ASK_AGAIN_MS = 100;

/**
 * KEYS: the claim, the slot of the last landing. ARGV: a token, the token that is waited for or "", CLAIM_MS.
 * Gives the token of whoever has the claim now, its transaction or "", and the slot or 0.
 *
 * A claim that is done is free, but whoever waited for just that one is to hear of its transaction. The
 * first command is a write: a Redis that takes none may not have been told that a claim is done.
 */
const TAKE: Script<[holder: string, transaction: string, slot: number]> = {
  answer: z.tuple([z.string(), z.string(), z.int()]),
  text: `
redis.call('HSET', KEYS[1], 'asked', '1')
local token, transaction, done = unpack(redis.call('HMGET', KEYS[1], 'token', 'transaction', 'done'))
local slot = tonumber(redis.call('GET', KEYS[2])) or 0
if token and (not done or token == ARGV[2]) then return {token, transaction or '', slot} end
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'token', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {ARGV[1], '', slot}
`,
};

/** KEYS: the claim. ARGV: the token, its transaction, SIGNED_MS. Gives 1, or 0 when the claim is another's. */
const KEEP: Script<number> = {
  answer: z.int(),
  text: `
local token = redis.call('HGET', KEYS[1], 'token')
if token and token ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'transaction', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`,
};

/** KEYS: as for TAKE. ARGV: the token, the slot or 0, LANDED_MS. Ends nothing when the claim is another's. */
const END: Script<unknown> = {
  answer: z.unknown(),
  text: `
local slot, known = tonumber(ARGV[2]), tonumber(redis.call('GET', KEYS[2])) or 0
if slot > known then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) end
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
if slot == 0 then return redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'done', '1')
return redis.call('PEXPIRE', KEYS[1], ARGV[3])
`,
};

const KEPT = z.object({ base64: z.string(), signature: z.string(), lastValidBlockHeight: z.int() });

export type Claims = ReturnType<typeof createClaims>;

/**
 * Sees to it that of all replicas one at a time signs a transaction for an account, and that the others
 * find what it has signed, whatever becomes of it.
 *
 * Without Redis, and while it cannot be had, every claim is granted. The chain guards the money then: a
 * vault is emptied once, whoever asks, so that two replicas that collect one account in the same moment
 * waste one fee, out of the budget of one of them.
 */
export function createClaims({ feePayer, redis }: { feePayer: string; redis: Redis | undefined }) {
  /** Waits while another replica is about to sign. Undefined when Redis cannot be had. */
  async function take(keys: string[], token: string, isGivenUp: () => boolean) {
    let awaited = "";
    for (;;) {
      if (isGivenUp()) throw new Error("another replica took longer to sign than a caller waits");
      const taken = await redis?.run(TAKE, keys, [token, awaited, CLAIM_MS]);
      if (!taken) return undefined;
      const [holder, transaction] = taken;
      if (holder === token || transaction !== "") return taken;
      awaited = holder;
      await sleep(ASK_AGAIN_MS);
    }
  }

  return {
    /** Claims the account with this address; throws once `isGivenUp`. */
    async claim(address: string, isGivenUp: () => boolean): Promise<Claim> {
      const keys = [`collect:${feePayer}:${address}`, `landed:${feePayer}:${address}`];
      const token = randomUUID();
      const [holder, transaction, slot] = (await take(keys, token, isGivenUp)) ?? [token, "", 0];
      let isSigned = holder !== token;

      const end = (landedSlot = 0) => {
        const args = [holder, landedSlot, LANDED_MS];
        // What is lost of a claim without a transaction expires by itself.
        if (isSigned) redis?.runLater(END, keys, args);
        else void redis?.run(END, keys, args);
      };
      const kept = KEPT.safeParse(parseJson(transaction));
      if (holder !== token && !kept.success) {
        end();
        throw new Error("what another replica has signed cannot be read", { cause: kept.error });
      }
      return {
        signedElsewhere: kept.data,
        landedSlot: slot,
        async keep(signed) {
          isSigned = true;
          const args = [token, JSON.stringify(signed), SIGNED_MS];
          // 0 is the one answer that forbids to send it: while Redis cannot be had there is none.
          return (await redis?.run(KEEP, keys.slice(0, 1), args)) !== 0;
        },
        end,
      };
    },
  };
}
