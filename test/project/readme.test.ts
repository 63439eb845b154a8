import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect } from "vitest";
import { it, world } from "../support/fixtures.ts";

const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
/** The commands in order, each with the answer that follows it. */
const COMMANDS = [...readme.matchAll(/^```sh\n([^]+?)\n```(?:\n\n```json\n([^]+?)```)?/gm)].map(
  ([, command, answer]) => ({ command: command!, answer }),
);
// `.ci/quick-start` runs the others.
const curls = COMMANDS.filter(({ command }) => command.startsWith("curl "));

const hasCurl = spawnSync("curl", ["--version"]).status === 0;

/** Replaces what differs from run to run. */
function toShape(text: string): unknown {
  return JSON.parse(text, (_, value: unknown) => {
    if (typeof value !== "string") return value;
    if (/^[1-9A-HJ-NP-Za-km-z]{80,90}$/.test(value)) return "<signature>";
    if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return "<time>";
    if (/^http:\/\/127\.0\.0\.1:\d+\//.test(value)) return new URL(value).pathname;
    return value;
  });
}

/** Without curl, they are skipped, except in CI. */
describe.skipIf(!hasCurl && !process.env.CI)("README.md's commands, on a new sandbox", () => {
  // In order: a command may need what the ones before have done.
  it("print the answers that README.md shows, and the others succeed", async () => {
    expect(curls.filter(({ answer }) => answer !== undefined).length).toBeGreaterThan(3);
    for (const { command, answer } of curls) {
      const here = command.replace("http://localhost:4000", world.url);
      const { stdout } = await promisify(execFile)("bash", ["-c", `${here} --silent --show-error`]);
      if (answer === undefined) expect(JSON.parse(stdout)).toMatchObject({ success: true });
      else expect([command, toShape(stdout)]).toEqual([command, toShape(answer)]);
    }
  });
});
