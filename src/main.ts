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
  await gateway.ready;
  const server = await listen(gateway.handleNode, config);

  const url = server.url + config.basePath;
  if (sandbox) console.log(sandbox.describe(url));
  else log.info({ url }, "listening");

  let isStopping = false;
  /** Finishes what is under way; a second signal, or too long a wait, ends the process at once. */
  async function stop(): Promise<void> {
    if (isStopping) abandon(1);
    isStopping = true;
    setTimeout(() => abandon(gateway.openSignatures().length > 0 ? 1 : 0), config.collect.timeoutMs);
    gateway.drain();
    // In this order: a request that is still being answered may start a transaction.
    await server.close();
    await gateway.settled();
    await sandbox?.close();
    process.exit(0);
  }
  function abandon(code: number): never {
    const signatures = gateway.openSignatures();
    if (signatures.length > 0) log.error({ signatures }, "ended while these transactions were under way");
    process.exit(code);
  }
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void stop());
}

main().catch((error: unknown) => {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError) console.error(message);
  else if (code === "EADDRINUSE") {
    console.error(`Tributary cannot start: ${message}. Set PORT to a free port, or to 0 for any.`);
  } else if (syscall === "listen" || syscall === "getaddrinfo") {
    console.error(`Tributary cannot start: ${message}. HOST must be an address of this machine.`);
  } else console.error("Tributary cannot start:", error);
  process.exit(1);
});
