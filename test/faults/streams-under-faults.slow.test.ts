import { afterEach, expect, it } from "vitest";
import { openEventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { startProgram } from "../support/program.ts";
import { isMethod, startTestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES, type World } from "../support/world.ts";

const WATCH =
  "subscription Watch($id: String!) { walletById(socialId: $id) { id balance { vault } } }";

let world: World | undefined;
afterEach(async () => {
  await world?.close();
  world = undefined;
});

it("at SIGTERM the process ends its streams with the time to come back, and exits", async () => {
  const sandbox = await startTestSandbox();
  const program = startProgram({
    ...sandbox.env,
    ...AMPLE_DEADLINES,
    NODE_ENV: "production",
    PORT: "0",
  });
  const url = await program.address(/"url":"(http[^"]+)"/);
  const variables = { id: sandbox.account("creator").id };
  const streams = await Promise.all(
    [1, 2, 3].map(() => openEventStream(url, { query: WATCH, variables })),
  );
  await eventually(() => {
    expect(streams.every(({ events }) => events().length === 1)).toBe(true);
  });
  // From now on the chain answers nothing, so a stream would never end by itself.
  sandbox.rpc.faults.add({ when: isMethod("getMultipleAccounts"), then: "hang" });
  program.child.kill("SIGTERM");
  expect(await program.exitCode()).toBe(0);
  await eventually(() => {
    expect(streams.map(({ end }) => end())).toEqual(["complete", "complete", "complete"]);
  });
  for (const stream of streams)
    expect(stream.events().at(-1)).toEqual({
      ...stream.events()[0],
      extensions: { retryAfterSeconds: expect.any(Number) },
    });
  await sandbox.close();
});
