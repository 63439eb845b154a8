import { existsSync } from "node:fs";
import { ConfigError, readConfig, wantsSandbox } from "./config.ts";
import { createGateway } from "./gateway.ts";
import { listen } from "./http/server.ts";
import { createLogger } from "./log.ts";

async function main(): Promise<void> {
  if (existsSync(".env")) process.loadEnvFile();
  const sandbox = wantsSandbox(process.env)
    ? await import("./sandbox/sandbox.ts").then(({ startSandbox }) => startSandbox())
    : undefined;
  const config = readConfig({ ...process.env, ...sandbox?.env });
  const log = createLogger(config.logLevel);
  const gateway = createGateway(config, { log });
  const server = await listen(gateway.handleNode, config);

  const url = server.url + config.basePath;
  if (sandbox) console.log(sandbox.describe(url));
  else log.info({ url }, "listening");

  let isStopping = false;
  /** Finishes what is under way; a second signal ends the process at once. */
  async function stop(): Promise<void> {
    if (isStopping) process.exit(1);
    isStopping = true;
    const bound = setTimeout(() => process.exit(1), config.collect.timeoutMs);
    await Promise.all([server.close(), gateway.close()]);
    await sandbox?.close();
    clearTimeout(bound);
    process.exit(0);
  }
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void stop());
}

main().catch((error: unknown) => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError) console.error(message);
  else if (code === "EADDRINUSE")
    console.error(`Tributary cannot start: ${message}. Set PORT to a free port, or to 0 for any.`);
  else console.error("Tributary cannot start:", error);
  process.exit(1);
});
