import type { Reporter, TestModule, SerializedError } from "vitest/node";

/** Ends a test run with `N passed, N failed`, and `, N skipped` when tests were left out. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const count = (state: string) => tests.filter((test) => test.result().state === state).length;
    // Failed hooks, files that do not load and errors outside of tests do not fail any test, so count them too.
    const suites = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const broken = suites.filter((suite) => suite.errors().length > 0).length + errors.length;
    const skipped = count("skipped") > 0 ? `, ${count("skipped")} skipped` : "";
    process.stdout.write(`${count("passed")} passed, ${count("failed") + broken} failed${skipped}\n`);
  }
}
