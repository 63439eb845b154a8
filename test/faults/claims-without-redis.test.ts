import { afterEach, beforeEach, expect, it } from "vitest";
import { createSandboxCollector } from "../support/collector-on-sandbox.ts";
import { hold, isMethod, startTestSandbox, type TestSandbox } from "../support/sandbox.ts";

let sandbox: TestSandbox;
beforeEach(async () => {
  sandbox = await startTestSandbox();
});
afterEach(() => sandbox.close());

// Counts are random without Redis: of a thousand pairs, one is equal.
it(
  "two replicas without Redis sign different transactions, so that each reports only its own landing",
  { retry: 1 },
  async () => {
    const release = hold(sandbox.rpc, isMethod("sendTransaction"));
    const replicas = [createSandboxCollector(sandbox), createSandboxCollector(sandbox)];
    const outcomes = replicas.map((replica) => replica.collect("creator"));
    const signatures = () => replicas.flatMap((replica) => replica.openSignatures());
    await expect.poll(signatures).toHaveLength(2);
    expect(new Set(signatures()).size).toBe(2);
    release();
    const kinds = (await Promise.all(outcomes)).map(({ kind }) => kind);
    expect(kinds.toSorted()).toEqual(["collected", "nothing"]);
  },
);
