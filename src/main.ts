import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { collectDefaultMetrics } from "@prometheus-io/client";
import { examine } from "./commands/doctor.ts";
import { report } from "./commands/finding.ts";
import { helpText } from "./commands/help.ts";
import { warnAboutUnknown } from "./commands/unknown-variables.ts";
import { ConfigError, readConfig, sandboxProblems, VARIABLE_NAMES, wantsSandbox } from "./config.ts";
import { createGateway } from "./gateway.ts";
import { listen } from "./http/server.ts";
import { createLogger } from "./observability/log.ts";
import { VERSION } from "./observability/version.ts";
import { PreflightError } from "./preflight.ts";

/** After SIGTERM the process still accepts requests for this long, so that load balancers see that it is not ready. */
const GRACE_MS = 1_000;

const OPTIONS = {
  help: { type: "boolean" },
  version: { type: "boolean" },
  "chain-port": { type: "string", default: "8899" },
  "social-port": { type: "string", default: "8898" },
} as const;

async function main(): Promise<void> {
  const { values, positionals } = readArguments();
  if (values.help) {
    console.log(helpText());
    return;
  }
  if (values.version) {
    console.log(VERSION);
    return;
  }
  if (existsSync(".env")) process.loadEnvFile();
  const [command] = positionals;
  if (command === undefined) await serve();
  else if (command === "sandbox") await runSandbox(values["chain-port"], values["social-port"]);
  else if (command === "doctor") await runDoctor();
  else throw new ConfigError([`unknown command ${JSON.stringify(command)}; run npm start -- --help`]);
}

function readArguments() {
  try {
    return parseArgs({ options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new ConfigError([`${(error as Error).message}; run npm start -- --help`]);
  }
}

/** Exits with 1 if a variable is at fault. */
async function runDoctor(): Promise<never> {
  const config = readConfig(process.env);
  for (const warning of warnAboutUnknown(process.env, VARIABLE_NAMES)) console.log(`check  ${warning}`);
  const { text, atFault } = report(await examine(config));
  console.log(text);
  // Connections to the upstreams may still be open.
  process.exit(atFault.length > 0 ? 1 : 0);
}

/** Imported on demand: production does not need it and may not have its packages. */
async function importSandbox() {
  try {
    return await import("./sandbox/sandbox.ts");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new ConfigError(["the sandbox's packages are not installed; run npm ci without --omit=optional"]);
  }
}

/** Runs only the sandbox's chain and network, and prints the variables for a production process that uses them. */
async function runSandbox(...ports: [chain: string, social: string]): Promise<void> {
  const problems = sandboxProblems(process.env);
  if (problems.length > 0) throw new ConfigError(problems);
  const [rpcPort, socialPort] = ports.map(Number);
  if (!isPort(rpcPort) || !isPort(socialPort)) {
    throw new ConfigError(["--chain-port and --social-port: expected whole numbers from 0 to 65535"]);
  }
  const { startSandbox } = await importSandbox();
  const sandbox = await startSandbox({ host: process.env.HOST || "127.0.0.1", rpcPort, socialPort });
  for (const [name, value] of Object.entries({ NODE_ENV: "production", ...sandbox.env })) {
    console.log(`${name}=${value}`);
  }
  console.error(
    "The sandbox's chain and social network run until Ctrl-C. Start a service with the lines above.",
  );
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void sandbox.close());
}

function isPort(port: number | undefined): port is number {
  return Number.isInteger(port) && port! >= 0 && port! <= 65_535;
}

async function serve(): Promise<void> {
  const sandbox = wantsSandbox(process.env)
    ? await importSandbox().then(({ startSandbox }) => startSandbox())
    : undefined;
  const config = readConfig(process.env, sandbox?.env);
  const log = createLogger(config.logLevel);
  for (const warning of warnAboutUnknown(process.env, VARIABLE_NAMES)) log.warn(warning);
  const gateway = createGateway(config, { log, sandbox });
  collectDefaultMetrics({ register: gateway.registry });
  const server = await listen(gateway.handleNode, config);
  const { host, adminPort } = config;
  // Not closed when the process stops: until it exits, /readyz and the metrics say how far it is.
  const admin =
    adminPort === undefined ? undefined : await listen(gateway.handleAdmin, { host, port: adminPort });

  let isStopping = false;
  /** Waits for requests and transactions in flight. A second signal or the timeout exits at once. */
  async function stop(graceMs: number): Promise<void> {
    if (isStopping) exit(1);
    isStopping = true;
    log.info("shutting down: /readyz returns 503, waiting for requests and transactions in flight");
    gateway.drain();
    await sleep(graceMs);
    setTimeout(() => exit(0), config.collect.timeoutMs);
    // Requests first: a request in flight may still start a transaction.
    await server.close();
    await gateway.settled();
    await gateway.outcomesWritten();
    await sandbox?.close();
    exit(0);
  }
  /** Exits with `code`, or with 1 if anything is unfinished. */
  function exit(code: number): never {
    const signatures = gateway.openSignatures();
    if (signatures.length > 0)
      log.error(
        { signatures },
        "exiting while these transactions are in flight: they may still land, so look them up by their signatures",
      );
    const outcomes = gateway.unwrittenOutcomes();
    if (outcomes > 0)
      log.error(
        { outcomes },
        "exiting before Redis has the outcomes of this many collects: each account stays locked until its next collect finds the outcome on the chain",
      );
    log.info("stopped");
    process.exit(signatures.length > 0 || outcomes > 0 ? 1 : code);
  }
  // Ctrl-C in a terminal: no load balancer to wait for.
  process.on("SIGINT", () => void stop(0));
  process.on("SIGTERM", () => void stop(GRACE_MS));

  // The server already answers; /readyz returns 503 until the preflight is done.
  await gateway.start();
  const url = server.url + config.basePath;
  if (sandbox) console.log(sandbox.describe(url));
  else log.info({ version: VERSION, url, adminUrl: admin && admin.url + config.basePath }, "listening");
}

main().catch((error: unknown) => {
  const { code, message, syscall, port } = error as NodeJS.ErrnoException & { port?: number };
  if (error instanceof ConfigError) console.error(message);
  else if (error instanceof PreflightError) console.error(`Tributary cannot start: ${message}`);
  else if (code === "EADDRINUSE") {
    const name = port === Number(process.env.ADMIN_PORT) ? "ADMIN_PORT" : "PORT";
    console.error(`Tributary cannot start: ${message}. Set ${name} to a free port, or to 0 for any.`);
  } else if (syscall === "listen" || syscall === "getaddrinfo") {
    console.error(
      `Tributary cannot start: ${message}. HOST must be an address of this machine, and PORT one that this user may open.`,
    );
  } else console.error("Tributary cannot start:", error);
  process.exit(1);
});
