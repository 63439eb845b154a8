/** The gateway, which on SIGUSR2 collects all garbage and prints how many MB of its heap are in use. Needs --expose-gc. */
process.on("SIGUSR2", () => {
  globalThis.gc!();
  console.log(`heap ${Math.round(process.memoryUsage().heapUsed / 2 ** 20)}`);
});
await import("../../src/main.ts");
