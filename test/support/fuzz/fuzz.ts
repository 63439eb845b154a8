import fc from "fast-check";
import { it, onTestFinished, type TestAPI } from "vitest";

/**
 * Number of cases, divided among the properties by their shares; `npm run fuzz` sets a high number.
 */
const CASES = Number(process.env.FUZZ_CASES ?? 800);
/**
 * Time limit of a property, only for `npm run fuzz`: it passes with the cases that have run by
 * then.
 */
const MAX_SECONDS =
  process.env.FUZZ_SECONDS === undefined ? undefined : Number(process.env.FUZZ_SECONDS);
/** How long the cases that run at the time limit may still take. */
const LAST_CASES_SECONDS = 600;
/**
 * The same seed gives the same cases, and a path selects the one that failed. The default is fixed,
 * so that tests fail because of a change and not by chance; `npm run fuzz` uses new seeds.
 */
const SEED = Number(process.env.FUZZ_SEED ?? 1);
const PATH = process.env.FUZZ_PATH;

/**
 * A test that runs `check` on its `share` of all cases, and prints their number and seed. Cases
 * that mostly wait can use up to `parallelRuns`, each with its own seed.
 */
export function fuzz<Case>(
  name: string,
  {
    share,
    parallelRuns = 1,
    test = it,
    cases,
    check,
  }: {
    share: number;
    parallelRuns?: number;
    test?: TestAPI<any>;
    cases: fc.Arbitrary<Case>;
    check: (one: Case) => Promise<void>;
  },
): void {
  const unhandled: unknown[] = [];
  const recordUnhandled = (reason: unknown) => unhandled.push(reason);
  const property = fc.asyncProperty(cases, async (one) => {
    await check(one);
    if (unhandled.length > 0)
      throw new Error("unhandled promise rejection", { cause: unhandled.pop() });
  });
  const count = Math.ceil(CASES * share);
  const runCount = PATH === undefined ? parallelRuns : 1;
  const limits =
    MAX_SECONDS === undefined ? {} : { timeout: 1000 * (MAX_SECONDS + LAST_CASES_SECONDS) };
  test(name, limits, async () => {
    process.on("unhandledRejection", recordUnhandled);
    onTestFinished(() => {
      process.off("unhandledRejection", recordUnhandled);
    });
    const startedAt = performance.now();
    const runs = await Promise.all(
      Array.from({ length: runCount }, (_, i) =>
        fc.check(property, {
          seed: SEED + i,
          numRuns: Math.ceil(count / runCount),
          ...(MAX_SECONDS === undefined ? {} : { interruptAfterTimeLimit: 1000 * MAX_SECONDS }),
          ...(PATH === undefined ? {} : { path: PATH }),
        }),
      ),
    );
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    const ran = runs.reduce((sum, { numRuns }) => sum + numRuns, 0);
    process.stdout.write(`fuzz | ${name} | ${ran} cases | ${seconds} s | FUZZ_SEED=${SEED}\n`);
    // fast-check reports a run that times out in its first case as failed, without a
    // counterexample.
    const failed = runs.find((run) => run.failed && run.counterexample);
    if (failed) {
      const replay = `FUZZ_SEED=${failed.seed} FUZZ_PATH=${failed.counterexamplePath} npx vitest run test/fuzz -t '${name}'`;
      throw new Error(`${replay}\n${fc.defaultReportMessage(failed)}`, {
        cause: failed.errorInstance,
      });
    }
  });
}
