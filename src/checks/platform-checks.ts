import { z } from "zod";
import { redisKeys } from "../store/redis-keys.ts";
import type { Redis } from "../store/redis.ts";
import { script } from "../store/script.ts";

/** How long a check counts. */
const REMEMBERED_SECONDS = 90 * 24 * 3_600;

const RECORD = script({
  keys: ["checks"],
  args: ["program", "slot", "seconds"],
  answer: z.unknown(),
  text: `
redis.call('HSET', checks, program, slot)
return redis.call('EXPIRE', checks, seconds)
`,
});
const READ = script({
  keys: ["checks"],
  args: ["program"],
  answer: z.coerce.number().int().nullable(),
  text: `return redis.call('HGET', checks, program)`,
});

type RunScript = Pick<Redis, "run">;

/**
 * Records for all replicas that `npm run doctor -- --platform` has checked the program that was
 * deployed in `slot`. Returns whether Redis has it.
 */
export async function recordPlatformCheck(
  redis: RunScript,
  program: string,
  slot: number,
): Promise<boolean> {
  const checks = redisKeys.platformChecks();
  const result = await redis.run(RECORD, { checks, program, slot, seconds: REMEMBERED_SECONDS });
  return result !== undefined;
}

/** The slot of the program's last checked deployment; undefined if Redis does not answer. */
export function readPlatformCheck(
  redis: RunScript,
  program: string,
): Promise<number | null | undefined> {
  return redis.run(READ, { checks: redisKeys.platformChecks(), program });
}
