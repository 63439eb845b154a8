import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { compareWithModel } from "../support/platform-states.ts";

let sandbox: TestSandbox;
beforeAll(async () => {
  expect(process.env.PLATFORM_PROGRAMS, "PLATFORM_PROGRAMS").toMatch(/./);
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

it.each([5_080, 2_575])(
  "the platform's programs do what the model says at a rent of %i lamports per byte",
  (rate) => {
    compareWithModel(sandbox, rate, 500);
  },
);
