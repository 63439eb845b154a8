// vitest ends its workers with SIGTERM. An exit also removes their temporary folders and kills
// their child processes.
if (process.listenerCount("SIGTERM") === 0) process.once("SIGTERM", () => process.exit());
