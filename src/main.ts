import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { collectDefaultMetrics } from "@prometheus-io/client";
import { helpText } from "./commands/help.ts";
import { warnAboutUnknown } from "./commands/unknown-variables.ts";
import { ConfigError, readConfig, VARIABLE_NAMES, wantsSandbox } from "./config.ts";
import { createGateway } from "./gateway.ts";
import { listen } from "./http/server.ts";
import { createLogger } from "./observability/log.ts";
import { VERSION } from "./observability/version.ts";
import { PreflightError } from "./preflight.ts";

/** After SIGTERM the process still accepts requests for this long, so that load balancers see that it is not ready. */
const GRACE_MS = 1_000;

/** What the process does, by its argument. */
const COMMANDS: Readonly<Record<string, () => Promise<void> | void>> = {
  serve,
  "--help": () => {
    console.log(helpText());
  },
  "--version": () => {
    console.log(VERSION);
  },
};

async function main([command = "serve"]: readonly string[]): Promise<void> {
  const run = COMMANDS[command];
  if (!run) throw new ConfigError([`Unknown argument ${JSON.stringify(command)}: see --help`]);
  if (existsSync(".env")) process.loadEnvFile();
  await run();
}

async function serve(): Promise<void> {
  const sandbox = wantsSandbox(process.env)
    ? await import("./sandbox/sandbox.ts").then(({ startSandbox }) => startSandbox())
    : undefined;
  const config = readConfig(process.env, sandbox?.env);
  const log = createLogger(config.logLevel);
  for (const warning of warnAboutUnknown(process.env, VARIABLE_NAMES)) log.warn(warning);
  const gateway = createGateway(config, { log, sandboxAccounts: sandbox?.accounts });
  collectDefaultMetrics({ register: gateway.registry });
  const server = await listen(gateway.handleNode, config);

  let isStopping = false;
  /** Waits for requests and transactions in flight. A second signal or the timeout exits at once. */
  async function stop(graceMs: number): Promise<void> {
    if (isStopping) exitNow(1);
    isStopping = true;
    log.info("shutting down: /readyz returns 503, waiting for requests and transactions in flight");
    gateway.drain();
    await sleep(graceMs);
    setTimeout(() => exitNow(gateway.openSignatures().length > 0 ? 1 : 0), config.collect.timeoutMs);
    // Requests first: a request in flight may still start a transaction.
    await server.close();
    await gateway.settled();
    await sandbox?.close();
    process.exit(0);
  }
  function exitNow(code: number): never {
    const signatures = gateway.openSignatures();
    if (signatures.length > 0) log.error({ signatures }, "exiting while these transactions are in flight");
    process.exit(code);
  }
  // Ctrl-C in a terminal: no load balancer to wait for.
  process.on("SIGINT", () => void stop(0));
  process.on("SIGTERM", () => void stop(GRACE_MS));

  // The server already answers; /readyz returns 503 until the preflight is done.
  await gateway.start();
  const url = server.url + config.basePath;
  if (sandbox) console.log(sandbox.describe(url));
  else log.info({ url }, "listening");
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError) console.error(message);
  else if (error instanceof PreflightError) console.error(`Tributary cannot start: ${message}`);
  else if (code === "EADDRINUSE") {
    console.error(`Tributary cannot start: ${message}. Set PORT to a free port, or to 0 for any.`);
  } else if (syscall === "listen" || syscall === "getaddrinfo") {
    console.error(`Tributary cannot start: ${message}. HOST must be an address of this machine.`);
  } else console.error("Tributary cannot start:", error);
  process.exit(1);
});
