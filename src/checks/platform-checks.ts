import { z } from "zod";
import { redisKeys } from "../store/redis-keys.ts";
import type { Redis } from "../store/redis.ts";
import { script } from "../store/script.ts";
import { LAUNCHPAD_PROGRAMS, type ProgramName } from "../chain/launchpad/program-ids.ts";

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
/** Returns names and slots in turn. */
const READ = script({
  keys: ["checks"],
  answer: z.array(z.string()),
  text: `return redis.call('HGETALL', checks)`,
});

/** By program: the deployment (its slot) that `npm run doctor -- --platform` has last checked. */
type CheckedSlots = ReadonlyMap<ProgramName, number>;

type RunScript = Pick<Redis, "run">;

/** Records checked deployments for all replicas. Returns whether Redis has them. */
export async function recordPlatformCheck(
  redis: RunScript,
  checkedSlots: CheckedSlots,
): Promise<boolean> {
  const results = await Promise.all(
    [...checkedSlots].map(([program, slot]) =>
      redis.run(RECORD, {
        checks: redisKeys.platformChecks(),
        ...{ program, slot, seconds: REMEMBERED_SECONDS },
      }),
    ),
  );
  return results.every((result) => result !== undefined);
}

/** Empty if Redis does not answer. */
export async function readPlatformChecks(redis: RunScript): Promise<CheckedSlots> {
  const answer = (await redis.run(READ, { checks: redisKeys.platformChecks() })) ?? [];
  const programs = Object.keys(LAUNCHPAD_PROGRAMS) as ProgramName[];
  const slots = programs.map(
    (program) => [program, Number(answer[answer.indexOf(program) + 1])] as const,
  );
  return new Map(slots.filter(([, slot]) => Number.isSafeInteger(slot)));
}
