import { execFile, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify, parseEnv } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { Settings } from "../../src/variables.ts";
import { blocksUnder, read, ROOT } from "../support/deployment-files.ts";
import { spawnNode } from "../support/program.ts";
import { startTestSandbox } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

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

/** What the recipe changes on a machine, besides files: each is only printed. */
const MACHINE = ["curl", "sha256sum", "tar", "useradd", "systemctl", "journalctl"];

describe("docs/operating.md's recipe for systemd", () => {
  const [prepare, variables, install] = blocksUnder("systemd");

  it("installs the Node that the tests run", () => {
    const versions = [...prepare!.matchAll(/v(\d+\.\d+\.\d+)/g)].map(([, version]) => version);
    expect(new Set(versions)).toEqual(new Set([manifest.devDependencies.node]));
  });

  it("installs a release that the unit starts, and that names its commit", async () => {
    const sandbox = await startTestSandbox();
    onTestFinished(() => sandbox.close());
    const root = temporaryFolder();
    const inRoot = (text: string) =>
      text
        .replaceAll(/(?<![\w.])(?=\/(?:opt|etc|usr\/local)\b)/g, root)
        .replace(" -o tributary", "");
    mkdirSync(join(root, "etc/systemd/system"), { recursive: true });
    writeFileSync(join(root, "fee-payer.json"), sandbox.env.FEE_PAYER_KEYPAIR);

    /** Runs commands as root of a machine whose files are in `root`. */
    async function run(commands: string, env: Record<string, string> = {}): Promise<string> {
      const stubs = MACHINE.map((name) => `${name}() { echo "${name} $*"; }`);
      // Nothing is downloaded.
      const npm = `npm() { [ "$1" = ci ] && ln -s ${ROOT}node_modules || command npm "$@"; }`;
      const script = [...stubs, npm, inRoot(commands)].join("\n");
      const PATH = `${dirname(process.execPath)}:${process.env.PATH!}`;
      const options = { cwd: root, env: { HOME: root, PATH, ...env } };
      return (await promisify(execFile)("bash", ["-ec", script], options)).stdout;
    }

    const [, tag] = /--branch (v\S+)/.exec(install!)!;
    const repository = join(root, "repository");
    for (const path of ["src", "deploy", "docs/errors.md", "package.json", "package-lock.json"])
      cpSync(join(ROOT, path), join(repository, path), { recursive: true });
    const commit = await run(`cd repository
      git init --quiet && git add .
      git -c user.name=A -c user.email=a@example commit --quiet --message=Release
      git tag ${tag!}
      git rev-parse HEAD`);

    expect(await run(prepare!)).toContain("useradd --system");
    const own = { ...sandbox.env, ...AMPLE_DEADLINES, ADMIN_PORT: "0", PORT: "0" };
    const env: Record<string, string> = { ...parseEnv(inRoot(variables!)), ...own };
    env.FEE_PAYER_KEYPAIR = join(root, "etc/tributary/fee-payer.json");
    const lines = Object.entries(env).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(join(root, "etc/tributary.env"), lines.join(""));
    const output = await run(install!, { REPOSITORY: repository });
    expect(output).toContain("systemctl enable --now tributary");
    expect(output).not.toContain("WRONG");

    const unit = readFileSync(join(root, "etc/systemd/system/tributary.service"), "utf8");
    const settings: Record<string, string> = Object.fromEntries(
      [...unit.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, inRoot(value!)]),
    );
    const [command, ...args] = settings.ExecStart!.split(" ");
    expect(command).toBe("node");
    const program = spawnNode(
      args,
      parseEnv(
        `${settings.Environment!}\n${readFileSync(settings.EnvironmentFile!, "utf8")}`,
      ) as Record<string, string>,
      settings.WorkingDirectory,
    );
    const url = await program.address(/"url":"(http[^"]+)"/);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(program.output()).toContain(`"commit":"${commit.trim()}"`);
    program.stop();
    expect(await program.exitCode()).toBe(0);
  });
});
