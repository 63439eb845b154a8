/** Prints how many lines src has, without the sandbox and the pages' assets. Fails above the limit. */
import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

/** Lower it when code goes. Raise it only for a feature, and say in the commit what the lines buy. */
const MAX_LINES = 16_917;

const ROOT = new URL("../src", import.meta.url).pathname;
const LEFT_OUT = ["sandbox/", "http/pages/assets/"];
const COUNTED = [".ts", ".json", ".lua"];

const lines = readdirSync(ROOT, { recursive: true, encoding: "utf8" })
  .filter((path) => COUNTED.includes(extname(path)) && !LEFT_OUT.some((folder) => path.startsWith(folder)))
  .map((path) => readFileSync(join(ROOT, path), "utf8").split("\n").length - 1)
  .reduce((sum, count) => sum + count, 0);

console.log(`src has ${lines} of at most ${MAX_LINES} lines.`);
if (lines > MAX_LINES) {
  console.error("Remove code, or raise MAX_LINES in scripts/count-lines.ts.");
  process.exitCode = 1;
}
