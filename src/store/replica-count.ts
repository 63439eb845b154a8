import { z } from "zod";
import { redisKeys } from "./redis-keys.ts";
import type { Redis } from "./redis.ts";
import { script } from "./script.ts";
import { randomUUID } from "node:crypto";

const ANNOUNCE_EVERY_MS = 1_000;
/** A replica that has not announced itself for this long has ended. */
const ENDED_AFTER_MS = 15_000;
/** Until Redis has answered; as many as share a budget while Redis is down. */
const UNKNOWN_COUNT = 4;

/** `replicas`: a sorted set of replicas, by the time of their last announcement. */
const ANNOUNCE = script({
  keys: ["replicas"],
  args: ["id"],
  answer: z.int().positive(),
  text: `
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZADD', replicas, now, id)
redis.call('ZREMRANGEBYSCORE', replicas, '-inf', now - ${ENDED_AFTER_MS})
redis.call('ZREMRANGEBYSCORE', replicas, '(' .. now, '+inf')
redis.call('PEXPIRE', replicas, ${ENDED_AFTER_MS})
return redis.call('ZCARD', replicas)
`,
});

export type ReplicaCount = ReturnType<typeof createReplicaCount>;

/**
 * Counts the replicas that share a Redis: each announces itself there every second, so no
 * request waits for it. While Redis is down, the last count stays. Without Redis, it is one.
 */
export function createReplicaCount(redis: Redis | undefined) {
  const id = randomUUID();
  let count = redis ? UNKNOWN_COUNT : 1;

  async function announce(): Promise<void> {
    count = (await redis?.run(ANNOUNCE, { replicas: redisKeys.replicas(), id })) ?? count;
  }

  void announce();
  const timer = redis && setInterval(() => void announce(), ANNOUNCE_EVERY_MS).unref();
  return {
    count: () => count,
    stop(): void {
      clearInterval(timer);
    },
  };
}
