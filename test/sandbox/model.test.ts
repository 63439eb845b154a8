import { afterAll, beforeAll, it } from "vitest";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { compareWithModel } from "../support/platform-states.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
});
afterAll(() => sandbox.close());

it.each([5_080, 2_575])(
  "the stand-ins do what the model says at a rent of %i lamports per byte",
  (rate) => {
    compareWithModel(sandbox, rate, 250);
  },
);
