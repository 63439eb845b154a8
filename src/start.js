// Starts the service in production. This file is plain JavaScript, because an older Node refuses a
// TypeScript file with ERR_UNKNOWN_FILE_EXTENSION, and so could not say which version the service
// needs.
import { createRequire } from "node:module";

const { engines, scripts } = createRequire(import.meta.url)("../package.json");
const [required] = /\d+/.exec(engines.node);
const { bun, deno, node } = process.versions;

// Bun and Deno also name the version of Node that they imitate.
if (bun || deno || Number.parseInt(node) < Number(required)) {
  console.error(
    `Tributary needs Node ${required} or later, not Bun or Deno; this is ${process.execPath} (${node}). Install Node ${required}, or the project's own: npm ci --include=dev, without --ignore-scripts.`,
  );
  process.exitCode = 1;
} else {
  import("./main.ts")
    .then(({ main, THIS_PROCESS }) =>
      main(process.argv.slice(2), {
        ...THIS_PROCESS,
        saferCommand: canMakeCode() ? scripts.start.replace("exec ", "") : undefined,
      }),
    )
    .then((code) => process.exit(code));
}

/**
 * Whether this process can make code from strings. Only V8 knows: the flag may stand in
 * NODE_OPTIONS, which process.execArgv does not show, and cannot be set after the start.
 */
function canMakeCode() {
  try {
    // eslint-disable-next-line no-new-func
    new Function("");
    return true;
  } catch {
    return false;
  }
}
