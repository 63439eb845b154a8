import { main } from "../../src/main.ts";

/** Runs the gateway, and collects garbage on SIGUSR2. Needs --expose-gc. */
process.on("SIGUSR2", () => {
  globalThis.gc!();
});
process.exit(await main(process.argv.slice(2)));
