// Starts the service in production. This file is plain JavaScript, because an older Node refuses a
// TypeScript file with ERR_UNKNOWN_FILE_EXTENSION, and so could not say which version the service
// needs.
import { createRequire } from "node:module";

const { engines } = createRequire(import.meta.url)("../package.json");
const [, required] = /^>=(\d+)$/.exec(engines.node);

if (Number.parseInt(process.versions.node) < Number(required)) {
  console.error(
    `Tributary needs Node ${required} or later, and this is Node ${process.versions.node}. The project's own Node was not installed: run npm ci without --ignore-scripts and --omit=dev.`,
  );
  process.exitCode = 1;
} else {
  import("./main.ts")
    .then(({ main }) => main(process.argv.slice(2)))
    .then((code) => process.exit(code));
}
