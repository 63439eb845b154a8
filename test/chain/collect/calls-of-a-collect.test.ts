import { afterEach, beforeEach, expect, it } from "vitest";
import {
  createSandboxCollector,
  type SandboxCollector,
} from "../../support/collector-on-sandbox.ts";
import { startTestSandbox, type TestSandbox } from "../../support/sandbox.ts";

const NO_ROOM = { name: "NoRoomError", shortage: { scope: "CALLER" } };

let sandbox: TestSandbox;
let collector: SandboxCollector;
beforeEach(async () => {
  sandbox = await startTestSandbox();
  // Two calls a second, and 15 for a block.
  collector = createSandboxCollector(sandbox, { env: { RPC_CALLS_PER_SECOND: "4" } });
});
afterEach(() => sandbox.close());

it("a block that has used its share of calls cannot start a collect, and fails nobody else's of the account", async () => {
  let refused: unknown;
  for (let i = 1; refused === undefined; i++) {
    const collect = collector.collect(`artist00${i}`, "greedy");
    refused = await collect.then(
      () => undefined,
      (error: unknown) => error,
    );
  }
  expect(refused).toMatchObject(NO_ROOM);
  const again = collector.collect("creator", "greedy");
  const honest = collector.collect("creator", "honest");
  await again.catch(() => undefined);
  expect(await honest).toMatchObject({ kind: "collected" });
});

it("many collects of a block at once are not refused for the calls that they may make", async () => {
  const collects = Array.from({ length: 8 }, (_, i) => collector.collect(`artist01${i}`));
  for (const outcome of await Promise.all(collects))
    expect(["collected", "nothing"]).toContain(outcome.kind);
});
