import type { Reporter, TestModule, SerializedError } from "vitest/node";

/**
 * Ends a test run with `N passed, N failed`; the line before says how many tests were skipped, if
 * any.
 */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    // Failed hooks, files that do not load and errors outside of tests do not fail any test, so
    // count them too.
    const suites = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const broken = suites.filter((suite) => suite.errors().length > 0).length + errors.length;
    if (count("skipped") > 0) process.stdout.write(`${count("skipped")} skipped\n`);
    process.stdout.write(`${count("passed")} passed, ${count("failed") + broken} failed\n`);
  }
}
