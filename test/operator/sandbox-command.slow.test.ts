import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createClient } from "../support/client.ts";
import { eventually } from "../support/eventually.ts";
import { runMain, startProgram, type Program } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const FREE_PORTS = ["sandbox", "--chain-port=0", "--social-port=0"];

/** Waits for the `NAME=value` lines of `npm run sandbox`. */
async function linesOf(program: Program) {
  await eventually(() => {
    expect(program.output()).toContain("Ctrl-C");
  });
  return program.output().match(/^[A-Z_]+=.*$/gm) ?? [];
}

/** Runs the sandbox in this process, and returns the variables that it prints. */
async function runSandbox(env: Record<string, string> = {}) {
  const lines = await linesOf(runMain(env, FREE_PORTS));
  return new Map(lines.map((line) => line.split("=") as [string, string]));
}

describe("npm run sandbox", () => {
  it("prints the variables with which a production process looks up and collects", async () => {
    const sandbox = startProgram({}, undefined, FREE_PORTS);
    const lines = await linesOf(sandbox);
    const folder = temporaryFolder();
    writeFileSync(join(folder, ".env"), lines.join("\n"));
    const service = startProgram({ ...AMPLE_DEADLINES, PORT: "0" }, folder);
    const client = createClient(await service.address(/"url":"(http[^"]+)"/));

    const { body: wallet } = await client.lookup("creator");
    expect(wallet.balance.vault).toBe("3.1000");
    expect((await client.collect(wallet.socialId)).body).toMatchObject({
      success: true,
      collected: "3.1000",
    });
    expect(service.output()).not.toMatch(/"level":[56]0/);

    sandbox.child.kill("SIGTERM");
    expect(await sandbox.exitCode()).toBe(0);
  });

  it("has the same token and keys each time, so that a service can stay configured", async () => {
    const [first, second] = await Promise.all([runSandbox(), runSandbox()]);
    for (const name of [
      "SOCIAL_API_TOKEN",
      "FEE_PAYER_KEYPAIR",
      "ESCROW_PROGRAM_ID",
      "ESCROW_SEED",
    ]) {
      expect(first.get(name), name).toMatch(/./);
      expect(first.get(name)).toBe(second.get(name));
    }
    expect(first.get("NODE_ENV")).toBe("production");
  });

  it("listens on loopback, and elsewhere only with SANDBOX=true", async () => {
    const refused = runMain({ HOST: "0.0.0.0" }, FREE_PORTS);
    expect(await refused.exitCode()).toBe(1);
    expect(refused.output()).toContain("HOST: expected a loopback address");

    const variables = await runSandbox({ HOST: "0.0.0.0", SANDBOX: "true" });
    expect(variables.get("SOLANA_RPC_URL")).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/);
    expect((await runSandbox()).get("SOCIAL_API_URL")).toMatch(/^http:\/\/127\.0\.0\.1:/);
  });

  it("refuses a port that is not a number", async () => {
    const program = runMain({}, ["sandbox", "--chain-port=http"]);
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toContain("--chain-port");
  });
});
