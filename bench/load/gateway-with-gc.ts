/** Runs the gateway; on SIGUSR2 it collects garbage. Needs --expose-gc. */
process.on("SIGUSR2", () => {
  globalThis.gc!();
});
await import("../../src/main.ts");
