import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../support/client.ts";
import { spawnNode } from "../support/program.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
const lock: {
  packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }>;
} = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));

/** The packages that `npm ci --omit=dev --omit=optional` installs. */
const packages = Object.entries(lock.packages)
  .filter(
    ([path, { dev, optional, devOptional }]) => path !== "" && !dev && !optional && !devOptional,
  )
  .map(([path]) => path);
/** What the image runs. */
const [, ...args]: string[] = JSON.parse(/CMD (.*)\n$/.exec(dockerfile)![1]!);
/** The lines of a stage that have this instruction, without it. */
function instructions(stage: string, instruction: string): string[] {
  const text = dockerfile
    .split(/^FROM /m)
    .find((part) => part.split("\n")[0]!.endsWith(` AS ${stage}`))!;
  return [...text.matchAll(/^([A-Z]+) (.*)$/gm)].flatMap(([, name, rest]) =>
    name === instruction ? [rest!] : [],
  );
}
/** What the image has of the project, beside the packages. */
const files = instructions("program", "COPY").map((line) => line.split(" ")[0]!);
const [, ...cleaning] = instructions("packages", "RUN");
const [, check] = /^HEALTHCHECK .*\\\n +CMD (.*)$/m.exec(dockerfile)!;
const [shell, ...checkArgs]: string[] = JSON.parse(check!);
const isHealthy = (env: Record<string, string>) =>
  spawnSync(shell!, checkArgs, { env: { PATH: process.env.PATH, ...env } }).status === 0;
const COMMIT = "0123456789abcdef0123456789abcdef01234567";

describe("the image", () => {
  let folder: string;
  let sandbox: TestSandbox;
  beforeAll(async () => {
    folder = temporaryFolder();
    for (const path of files) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
    const installed = packages.filter((path) => path.lastIndexOf("node_modules/") === 0);
    // Hard links are faster than copies, but exist only within one file system.
    const copy = 'cp -r --link --parents "$@" 2>/dev/null || cp -r --parents "$@"';
    execFileSync("sh", ["-c", copy, "sh", ...installed, folder], { cwd: ROOT });
    for (const run of [...cleaning, ...instructions("program", "RUN")]) {
      execFileSync("sh", ["-c", run], { cwd: folder, env: { ...process.env, COMMIT } });
    }
    sandbox = await startTestSandbox();
  });
  afterAll(async () => {
    await sandbox.close();
  });

  const start = (env: Record<string, string>) =>
    spawnNode([...args.slice(0, -1), join(folder, args.at(-1)!)], env);
  const startProduction = (env: Record<string, string> = {}) =>
    start({ ...sandbox.env, ...AMPLE_DEADLINES, NODE_ENV: "production", PORT: "0", ...env });

  it("runs a production process, which is healthy while it answers, at all addresses", async () => {
    const [, HOST] = /^ENV .*\bHOST=(\S+)/m.exec(dockerfile)!;
    const program = startProduction({ HOST: HOST!, BASE_PATH: "/api" });
    const { port } = new URL(await program.address(/"url":"(http[^"]+)"/));
    expect(isHealthy({ PORT: port, BASE_PATH: "/api" })).toBe(true);
    expect(isHealthy({ PORT: port, BASE_PATH: "" })).toBe(false);
    for (const address of ["[::1]", "127.0.0.1"])
      expect((await fetch(`http://${address}:${port}/api/livez`)).status).toBe(200);
    const client = createClient(`http://127.0.0.1:${port}/api`);
    const { body } = await client.lookup("creator");
    expect((await client.collect(body.socialId)).body).toMatchObject({
      success: true,
      collected: "3.1000",
    });
    expect((await client.request("/docs")).status).toBe(200);
    expect(program.output()).toContain(`"commit":"${COMMIT}"`);
    program.child.kill("SIGTERM");
    expect(await program.exitCode()).toBe(0);
    expect(isHealthy({ PORT: port, BASE_PATH: "/api" })).toBe(false);
  });

  it("says that it has no sandbox when nothing is configured", async () => {
    const program = start({});
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toContain("the sandbox's packages are not installed");
  });
});
