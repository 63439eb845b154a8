import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { createClient } from "../support/client.ts";
import { spawnNode } from "../support/program.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
const lock: { packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }> } =
  JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));

/** The packages that `npm ci --omit=dev --omit=optional` installs. */
const packages = Object.entries(lock.packages)
  .filter(([path, { dev, optional, devOptional }]) => path !== "" && !dev && !optional && !devOptional)
  .map(([path]) => path);
/** What the image runs. */
const [command, ...args]: string[] = JSON.parse(/CMD (.*)\n$/.exec(dockerfile)![1]!);
/** What the image has of the project, beside the packages. */
const stage = dockerfile.split(/^FROM /m).find((text) => text.includes(" AS program\n"))!;
const files = [...stage.matchAll(/^COPY (\S+) \S+$/gm)].map(([, path]) => path!);

describe("the image", () => {
  let folder: string;
  let sandbox: TestSandbox;
  beforeAll(async () => {
    folder = temporaryFolder();
    for (const path of files) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
    // Links, which Node must not resolve: the targets' neighbours are packages that the image does not have.
    for (const path of packages) {
      if (existsSync(join(folder, path))) continue;
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      symlinkSync(join(ROOT, path), join(folder, path));
    }
    sandbox = await startTestSandbox();
  });
  afterAll(async () => {
    await sandbox.close();
  });

  const start = (env: Record<string, string>) =>
    spawnNode(
      [...args.slice(0, -1), "--preserve-symlinks", "--preserve-symlinks-main", join(folder, args.at(-1)!)],
      env,
    );

  /** npm's shell becomes the service. */
  const COMMAND = manifest.scripts.start.replace(/^exec /, "");
  it("runs the command of `npm start`", () => {
    expect([command, ...args].join(" ")).toBe(COMMAND);
    const operating = readFileSync(join(ROOT, "docs/operating.md"), "utf8");
    expect(operating).toContain(`\`${COMMAND}\``);
    for (const variable of /^ENV (.*)$/m.exec(dockerfile)![1]!.split(" ")) {
      if (!variable.startsWith("HOST=")) expect(operating).toContain(`\`${variable}\``);
    }
  });

  it("has no package that only the sandbox, types or tests need", () => {
    for (const name of ["litesvm", "@solana/kit", "typescript", "vitest"]) {
      expect(existsSync(join(folder, "node_modules", name)), name).toBe(false);
    }
    expect(dockerfile).toContain("RUN npm ci --omit=dev --omit=optional --ignore-scripts\n");
  });

  it("runs a production process", async () => {
    const program = start({ ...sandbox.env, ...AMPLE_DEADLINES, NODE_ENV: "production", PORT: "0" });
    const client = createClient(await program.address(/"url":"(http[^"]+)"/));
    const { body } = await client.lookup("creator");
    expect((await client.collect(body.socialId)).body).toMatchObject({ success: true, collected: "3.1000" });
    for (const path of ["/", "/docs", "/errors.md"]) expect((await client.request(path)).status).toBe(200);
    program.child.kill("SIGTERM");
    expect(await program.exitCode()).toBe(0);
  });

  it("says that it has no sandbox when nothing is configured", async () => {
    const program = start({});
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toContain("the sandbox's packages are not installed");
  });
});
