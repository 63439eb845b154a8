import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { compareWithModel } from "../support/platform-states.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
});
afterAll(() => sandbox.close());

it.each(["launchpad", "amm"])("the stand-ins are built from their current sources: %s", (name) => {
  const file = (name: string) =>
    readFileSync(new URL(`../../src/sandbox/programs/${name}`, import.meta.url));
  const hash = createHash("sha256")
    .update(file("sbf.h"))
    .update(file(`${name}.c`))
    .digest("hex");
  const isBuilt = file(`${name}.so`).includes(hash);
  expect(isBuilt, "run `npm run sandbox:program` after a change").toBe(true);
});

it.each([5_080, 2_575])(
  "the stand-ins do what the model says at a rent of %i lamports per byte",
  (rate) => {
    compareWithModel(sandbox, rate, 50);
  },
);
