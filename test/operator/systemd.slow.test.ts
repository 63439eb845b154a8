import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { Settings } from "../../src/variables.ts";
import { read } from "../support/deployment-files.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const unit = read("deploy/tributary.service");
const valueOf = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1];

describe("the systemd unit", () => {
  it("starts node itself with the command of npm start", () => {
    expect(valueOf("ExecStart")).toBe(manifest.scripts.start.replace("exec ", ""));
  });

  it("waits for transactions in flight before it kills the service", () => {
    const collectMs = Settings.shape.COLLECT_TIMEOUT_MS.parse(undefined);
    expect(Number(valueOf("TimeoutStopSec"))).toBe(collectMs / 1_000 + 15);
  });

  // Not every machine runs systemd, and nothing else needs it.
  describe.skipIf(spawnSync("systemd-analyze", ["--version"]).error)("for systemd", () => {
    function analyze(...args: string[]) {
      const file = join(temporaryFolder(), "tributary.service");
      writeFileSync(file, unit.replace("=node ", `=${process.execPath} `));
      return spawnSync("systemd-analyze", [...args, file], { encoding: "utf8" });
    }

    it("is valid", () => {
      const { status, stderr } = analyze("verify");
      expect([status, stderr]).toEqual([0, ""]);
    });

    it("has an exposure below 3", () => {
      const { status, stdout } = analyze("security", "--offline=true", "--threshold=29");
      expect([status, stdout.trim().split("\n").at(-1)]).toEqual([
        0,
        expect.stringMatching(/exposure level .* [0-2]\.\d /),
      ]);
    });
  });
});
