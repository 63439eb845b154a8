import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { startWorld } from "../support/world.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

it("the README's code derives the address of a lookup from its derivation, with web3.js and with kit", async () => {
  const world = await startWorld();
  onTestFinished(() => world.close());
  const readme = readFileSync(`${ROOT}README.md`, "utf8");
  const snippets = [...readme.matchAll(/^```js\n([^]+?)^```/gm)].map(([, code]) => code!);
  const packages = snippets.map((code) => /from "(.+)"/.exec(code)![1]);
  expect(packages).toEqual(["@solana/web3.js", "@solana/kit"]);
  for (const handle of ["creator", "launcher", "artist007"]) {
    const { address, derivation } = (await world.lookup(handle)).body;
    for (const code of snippets) {
      const program = `const derivation = ${JSON.stringify(derivation)};\n${code}console.log(String(address));`;
      const { stdout } = await run("node", ["--input-type=module", "-e", program], { cwd: ROOT });
      expect(stdout).toBe(`${address}\n`);
    }
  }
});
