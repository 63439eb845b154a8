import { main } from "../../src/main.ts";

/** Runs the gateway; on SIGUSR2 it collects garbage. Needs --expose-gc. */
process.on("SIGUSR2", () => {
  globalThis.gc!();
});
process.exit(await main(process.argv.slice(2)));
