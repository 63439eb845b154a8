import fc from "fast-check";
import { it } from "vitest";

/** All cases together, dealt out to the properties by their shares; `npm run fuzz` asks for many. */
const CASES = Number(process.env.FUZZ_CASES ?? 3_000);
/** After so long a property ends with the cases that it has had. */
const MAX_SECONDS = Number(process.env.FUZZ_SECONDS ?? 6);
/**
 * The same seed gives the same cases; with a path, the one case that failed. The tests always have the same, so
 * that they fail for a change and not by chance; the long run has new ones.
 */
const SEED = Number(process.env.FUZZ_SEED ?? 1);
const PATH = process.env.FUZZ_PATH;
/** A lane is worth its start when it has so many. */
const CASES_A_LANE = 20;

const unhandled: unknown[] = [];
process.on("unhandledRejection", (reason) => unhandled.push(reason));

/**
 * A test that holds `check` for `share` of all cases, and prints how many it had and their seed. Up to `lanes`
 * of them run at once, each with seeds of its own, for cases that mostly wait.
 */
export function fuzz<Case>(
  name: string,
  {
    share,
    lanes = 1,
    cases,
    check,
  }: {
    share: number;
    lanes?: number;
    cases: fc.Arbitrary<Case>;
    check: (one: Case) => Promise<void>;
  },
): void {
  const property = fc.asyncProperty(cases, async (one) => {
    await check(one);
    if (unhandled.length > 0) throw new Error("a promise was rejected unhandled", { cause: unhandled.pop() });
  });
  const count = Math.ceil(CASES * share);
  const runAtOnce = PATH === undefined ? Math.min(lanes, Math.ceil(count / CASES_A_LANE)) : 1;
  it(name, { timeout: 1000 * (2 * MAX_SECONDS + 600) }, async () => {
    const startedAt = performance.now();
    const runs = await Promise.all(
      Array.from({ length: runAtOnce }, (_, lane) =>
        fc.check(property, {
          seed: SEED + lane,
          numRuns: Math.ceil(count / runAtOnce),
          interruptAfterTimeLimit: 1000 * MAX_SECONDS,
          ...(PATH === undefined ? {} : { path: PATH }),
        }),
      ),
    );
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    const had = runs.reduce((sum, { numRuns }) => sum + numRuns, 0);
    process.stdout.write(`fuzz | ${name} | ${had} cases | ${seconds} s | FUZZ_SEED=${SEED}\n`);
    // A lane whose time was up before its first case had ended counts as failed, without a counterexample.
    const failed = runs.find((run) => run.failed && run.counterexample);
    if (failed) {
      const replay = `FUZZ_SEED=${failed.seed} FUZZ_PATH=${failed.counterexamplePath} npx vitest run test/fuzz -t '${name}'`;
      throw new Error(`${replay}\n${fc.defaultReportMessage(failed)}`, { cause: failed.errorInstance });
    }
  });
}
