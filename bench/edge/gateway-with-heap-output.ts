import { main } from "../../src/main.ts";

/** Runs the gateway; on SIGUSR2 it collects garbage and prints the MB of heap in use. Needs --expose-gc. */
process.on("SIGUSR2", () => {
  globalThis.gc!();
  console.log(`heap ${Math.round(process.memoryUsage().heapUsed / 2 ** 20)}`);
});
process.exit(await main(process.argv.slice(2)));
