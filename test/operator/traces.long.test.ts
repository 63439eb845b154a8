import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { parseEnv, promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { blocksUnder, ROOT } from "../support/deployment-files.ts";
import { NO_CODE_FROM_STRINGS, spawnNode } from "../support/program.ts";
import { startTestSandbox } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

it(
  "docs/operating.md's recipe adds traces to an installed release",
  { timeout: 1_800_000 },
  async ({ skip }) => {
    const [install, variables] = blocksUnder("Traces");
    const release = temporaryFolder();
    execFileSync("sh", ["-c", 'git ls-files -z | xargs -0 cp --parents -t "$0"', release], {
      cwd: ROOT,
    });
    const run = (command: string) =>
      promisify(execFile)("bash", ["-ec", command], { cwd: release });
    try {
      await run("npm ci --omit=dev --omit=optional --ignore-scripts");
    } catch (error) {
      // In CI, what cannot be installed is a failure.
      if (process.env.CI) throw error;
      skip(`nothing can be installed: ${String(error)}`);
    }
    await run(install!);

    const paths: (string | undefined)[] = [];
    const collector = createServer(({ url }, response) => {
      paths.push(url);
      response.end();
    }).listen(0, "127.0.0.1");
    await once(collector, "listening");
    onTestFinished(() => void collector.close());
    const { port } = collector.address() as AddressInfo;
    const sandbox = await startTestSandbox();
    onTestFinished(() => sandbox.close());
    const program = spawnNode(
      [NO_CODE_FROM_STRINGS, join(release, "src/start.js")],
      {
        ...sandbox.env,
        ...AMPLE_DEADLINES,
        NODE_ENV: "production",
        PORT: "0",
        ...parseEnv(variables!.replace("collector:4318", `127.0.0.1:${port}`)),
      },
      release,
    );
    const url = await program.address(/"url":"(http[^"]+)"/);
    expect((await fetch(`${url}/wallet/lookup?handle=creator`)).status).toBe(200);
    await expect.poll(() => paths).toContain("/v1/traces");
    program.stop();
    expect(await program.exitCode()).toBe(0);
  },
);
