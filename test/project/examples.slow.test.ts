import { execFile, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished } from "vitest";
import { chain, withWorld, world } from "../support/fixtures.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { startWorld, type World } from "../support/world.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const SIGNATURES = /[1-9A-HJ-NP-Za-km-z]{80,90}/g;
const COMMANDS = [
  "examples/flow.sh",
  "node examples/flow.ts",
  "node examples/graphql/flow.ts",
  "node examples/clients/apollo-client.ts",
  "node examples/clients/graphql-request.ts",
  "node examples/clients/openapi-fetch.ts",
  "node examples/clients/urql.ts",
];

const hasCurl = spawnSync("curl", ["--version"]).status === 0;
/** Without curl, tests of the shell script are skipped, except in CI. */
const commands = hasCurl || process.env.CI ? COMMANDS : COMMANDS.slice(1);

/** Runs a command line with this process's Node first in PATH. */
function shell(line: string): Promise<{ exitCode: number; output: string }> {
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ""}` };
  return new Promise((resolve) => {
    const child = execFile(
      "bash",
      ["-c", `{ ${line}; } 2>&1`],
      { cwd: ROOT, env },
      (_error, output) => {
        resolve({ exitCode: child.exitCode ?? -1, output });
      },
    );
  });
}

/** What all collects have moved from vaults, in SOL. */
function movedSol({ sandbox }: World): number {
  const vaults = new Set<string>(sandbox.accounts.map(({ creatorVault }) => creatorVault));
  let lamports = 0n;
  for (const { message, preBalances, postBalances } of sandbox.landedCollects())
    message.accountKeys.forEach((key, i) => {
      if (vaults.has(key)) lamports += preBalances[i]! - postBalances[i]!;
    });
  return Number(lamports) / 1e9;
}

const it = withWorld({ RATE_LIMIT_MAX: "1000" });

describe("the examples", () => {
  it.skipIf(commands !== COMMANDS)("print what examples/README.md shows", async () => {
    const readme = readFileSync(join(ROOT, "examples/README.md"), "utf8");
    const sessions = [...readme.matchAll(/```console\n\$ (.+)\n([^]*?)```/g)];
    expect(sessions).toHaveLength(2);
    for (const [, line, shown] of sessions) {
      const here = line!.replace("http://127.0.0.1:4000", world.url);
      const { output } = await shell(here);
      const [real, expected] = [output, shown!].map((text) =>
        text.replaceAll(SIGNATURES, "<signature>"),
      );
      expect(real).toBe(expected);
    }
  });

  it("examples/indexer.ts: resolves handles once, reads by id, and collects what is worth it", async () => {
    const limited = await startWorld({ RATE_LIMIT_MAX: "20", RATE_LIMIT_WINDOW_SECONDS: 3_600 });
    onTestFinished(() => limited.close());
    const artists = Array.from(
      { length: 100 },
      (_, i) => `artist${String(i + 1).padStart(3, "0")}`,
    );
    const file = join(temporaryFolder(), "handles");
    writeFileSync(file, ["creator", ...artists, "nobodyatall", "no handle", "newcomer"].join("\n"));
    const index = () => shell(`node examples/indexer.ts ${limited.url} ${file} 40 1`);

    const first = await index();
    expect(first.output).toContain("Round 1: 102 of 104 creators");
    expect(first.output).toMatch(/^nobodyatall: The account does not exist/m);
    expect(first.output).toMatch(/^no handle: The handle must be 1-15 alphanumeric characters/m);
    const collected = [...first.output.matchAll(/^(\w+): collected (\S+) SOL: \S+$/gm)];
    expect(collected.map(([, handle, sol]) => [handle, sol])).toContainEqual([
      "artist003",
      "41.0000",
    ]);
    for (const [, , sol] of collected) expect(Number(sol)).toBeGreaterThanOrEqual(40);
    expect(first.output).toContain(`Collected so far: ${movedSol(limited)} SOL\n`);
    expect(first.exitCode).toBe(0);

    limited.forgetCalls();
    const second = await index();
    expect(second.output).toBe("Round 1: 102 of 104 creators, 0 to collect\n");
    expect(limited.sandbox.social.calls).toEqual([]);
    expect(limited.chainCalls()).toHaveLength(5);
  });

  it.each(commands)("%s: collects the fees in a transaction on the chain", async (command) => {
    const handle = `artist01${COMMANDS.indexOf(command) + 1}`;
    const { vault, total } = (await world.lookup(handle)).body.balance;
    const { exitCode, output } = await shell(`${command} ${world.url} ${handle}`);
    expect(output).toContain(`${handle}: address ${world.account(handle).address}`);
    expect(output).toMatch(new RegExp(`In the vault: ${vault} SOL`, "i"));
    expect(output).toMatch(new RegExp(`Collected:? ${vault} SOL`, "i"));
    expect(output).toMatch(new RegExp(`New balance:? ${total} SOL`, "i"));
    expect(exitCode).toBe(0);
    const [signature] = output.match(SIGNATURES)!;
    expect(chain.landed(signature)?.err).toBeNull();
  });
});
