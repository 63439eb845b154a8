import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect, parseArgs } from "node:util";
import { collectDefaultMetrics } from "@prometheus-io/client";
import { loadEnvFile } from "./commands/env-file.ts";
import { helpText } from "./commands/help.ts";
import { warnAboutRisks } from "./commands/risky-variables.ts";
import { warnAboutUnknown } from "./commands/unknown-variables.ts";
import {
  ConfigError,
  readConfig,
  sandboxProblems,
  wantsSandbox,
  type Environment,
} from "./config.ts";
import { listen } from "./http/server.ts";
import { createLogger, reportDroppedLines, type DestinationStream } from "./observability/log.ts";
import { toError } from "./observability/thrown.ts";
import { COMMIT, VERSION } from "./observability/version.ts";
import { monotonicNow, type MonotonicTime, msSince } from "./time/monotonic.ts";

/**
 * After SIGTERM the process still accepts requests for this long, so that load balancers see that
 * it is not ready.
 */
const GRACE_MS = 1_000;

/**
 * A second signal counts only after this time, because npm forwards signals that this process has
 * also received.
 */
const SECOND_SIGNAL_MS = 1_000;

const OPTIONS = {
  help: { type: "boolean", short: "h" },
  version: { type: "boolean" },
  id: { type: "string" },
  platform: { type: "boolean" },
  url: { type: "string" },
  "chain-port": { type: "string", default: "8899" },
  "social-port": { type: "string", default: "8898" },
} as const;

export const THIS_PROCESS = {
  /** Reads the environment variables and the working directory's .env file. */
  readEnv() {
    const warnings = loadEnvFile(".env");
    return { env: process.env, warnings };
  },
  print: console.log,
  printError: console.error,
  onSignal(stop: (signal: "SIGINT" | "SIGTERM") => void) {
    process.on("SIGINT", stop).on("SIGTERM", stop);
  },
};

/** What a command needs from the process. Tests pass their own. */
type Host = typeof THIS_PROCESS & {
  /** Default: standard output. */
  readonly logStream?: DestinationStream;
  /**
   * The command that starts the service in a process that cannot make code from strings. Undefined
   * if this process cannot.
   */
  readonly saferCommand?: string | undefined;
};

/**
 * Runs a command until it ends, and returns its exit code. Its servers and connections may still be
 * closing then.
 */
export async function main(args: readonly string[], host: Host = THIS_PROCESS): Promise<number> {
  let env: Environment = {};
  let hints: readonly string[] = [];
  let isService = false;
  try {
    const { values, positionals } = readArguments(args);
    if (values.help || values.version) {
      host.print(values.help ? helpText() : VERSION);
      return 0;
    }
    const read = host.readEnv();
    ({ env } = read);
    hints = [...read.warnings, ...warnAboutUnknown(env)];
    const warnings = [...hints, ...warnAboutRisks(env)];
    const [command, ...mints] = positionals;
    isService = command === undefined;
    if (isService) return await serve(env, host, warnings);
    if (command === "sandbox") return await runSandbox(env, host, values);
    if (command === "doctor") {
      const config = readConfig(env);
      const { examine } = await import("./commands/doctor.ts");
      return await examine(config, host.print, {
        warnings,
        id: values.id,
        mints: values.platform ? mints : undefined,
      });
    }
    if (command === "status") {
      const { showStatus } = await import("./commands/status.ts");
      return await showStatus(env, { ...host, url: values.url });
    }
    throw new ConfigError([`unknown command ${JSON.stringify(command)}; run npm start -- --help`]);
  } catch (error) {
    const text = describeFailure(error, hints);
    if (isService && env.NODE_ENV === "production") {
      // Not LOG_LEVEL, which may be what is wrong.
      const instance = instanceAt(env.PORT || 4000);
      createLogger("error", host.logStream).error({ instance }, text);
    } else host.printError(text);
    return 1;
  }
}

/**
 * Returns what to say when a command fails. `hints`: warnings about variables, which may explain
 * the failure.
 */
function describeFailure(error: unknown, hints: readonly string[]): string {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  if (error instanceof ConfigError) return [message, ...hints].join("\n  - ");
  const isListenError =
    code === "ERR_SOCKET_BAD_PORT" || syscall === "listen" || syscall === "getaddrinfo";
  const reason = isListenError
    ? `${message}. HOST must be an address of this machine, and ports must be free, and ones that this user may open.`
    : inspect(error);
  return `Tributary cannot start: ${reason}`;
}

/** Names this replica in its log lines. */
function instanceAt(port: number | string): string {
  return `${hostname()}:${port}`;
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    // Drop Node's advice on how to pass the option as a positional argument.
    const [message] = toError(error).message.split(". To specify");
    throw new ConfigError([`${message}; run npm start -- --help`]);
  }
}

/**
 * Starts a sandbox with the platform's programs that PLATFORM_PROGRAMS selects. Imports it on
 * demand: production does not need it, and may not have its packages.
 */
async function openSandbox(
  env: Environment,
  at: { host?: string | undefined; rpcPort?: number; socialPort?: number } = {},
) {
  const vm = await import("litesvm/dist/internal.js").catch(() => undefined);
  if (!vm)
    throw new ConfigError([
      `the sandbox's packages are not installed; run npm ci without --omit=optional. They exist for Linux and macOS, on x64 and arm64; this is ${process.platform} on ${process.arch}`,
    ]);
  const { startSandbox } = await import("./sandbox/sandbox.ts");
  return startSandbox({ ...at, platformPrograms: env.PLATFORM_PROGRAMS || undefined });
}

/**
 * Runs only the sandbox's chain and network. Prints the variables with which a service uses this
 * chain and network.
 */
async function runSandbox(
  env: Environment,
  { print, printError, onSignal }: Host,
  ports: { "chain-port": string; "social-port": string },
): Promise<number> {
  const problems = sandboxProblems(env);
  if (problems.length > 0) throw new ConfigError(problems);
  const sandbox = await openSandbox(env, {
    host: env.HOST || undefined,
    rpcPort: Number(ports["chain-port"]),
    socialPort: Number(ports["social-port"]),
  });
  for (const [name, value] of Object.entries({ NODE_ENV: "production", ...sandbox.env })) {
    print(`${name}=${value}`);
  }
  printError(`Launch platform: ${sandbox.programs}`);
  printError(
    "The sandbox's chain and social network run until Ctrl-C. Start a service with the lines above.",
  );
  await new Promise(onSignal);
  await sandbox.close();
  return 0;
}

/** Runs the service until it is stopped, or its start fails. */
async function serve(
  env: Environment,
  { print, logStream, onSignal, saferCommand }: Host,
  warnings: readonly string[],
): Promise<number> {
  if (env.NODE_ENV === "production" && saferCommand !== undefined)
    throw new ConfigError([
      `NODE_ENV=production needs a process that makes no code from strings. Start it with npm start, or with: ${saferCommand}`,
    ]);
  using openParts = new DisposableStack();
  // `close` is not awaited, because requests may still be in flight.
  const open = <T extends { close(): unknown }>(part: T) =>
    openParts.adopt(part, () => void part.close());
  const sandbox = wantsSandbox(env) ? open(await openSandbox(env)) : undefined;
  const config = readConfig(env, sandbox?.env);
  const log = createLogger(config.logLevel, logStream).child({ instance: instanceAt(config.port) });
  reportDroppedLines(log);
  for (const warning of warnings) log.warn(warning);
  const { createGateway } = await import("./gateway.ts");
  const gateway = open(createGateway(config, { log, sandbox }));
  collectDefaultMetrics({ register: gateway.registry });
  const { adminPort } = config;
  const server = open(await listen(gateway.api, config));
  // Stays open until the process exits, so that /readyz and the metrics show the progress of a
  // shutdown.
  const admin =
    adminPort === undefined
      ? undefined
      : open(await listen(gateway.admin, { ...config, port: adminPort }));

  const { promise: exitCode, resolve: end } = Promise.withResolvers<number>();
  let firstSignalAt: MonotonicTime | undefined;
  /**
   * Waits for requests and transactions in flight. A second signal or the timeout ends the wait.
   */
  async function stop(graceMs: number): Promise<void> {
    if (firstSignalAt !== undefined) {
      if (msSince(firstSignalAt) >= SECOND_SIGNAL_MS) end(1);
      return;
    }
    firstSignalAt = monotonicNow();
    log.info("shutting down: /readyz returns 503, waiting for requests and transactions in flight");
    gateway.drain();
    openParts.adopt(setTimeout(end, graceMs + config.collectTimeoutMs, 0), clearTimeout);
    await sleep(graceMs);
    // Requests first: a request in flight may still start a transaction.
    await server.close();
    await gateway.settled();
    await gateway.outcomesWritten();
    end(0);
  }
  // Ctrl-C in a terminal: no load balancer to wait for.
  onSignal((signal) => void stop(signal === "SIGINT" ? 0 : GRACE_MS));

  async function start(): Promise<void> {
    await gateway.start();
    const url = server.url + config.basePath;
    if (sandbox) print(sandbox.describe(url));
    else {
      const adminUrl = admin && admin.url + config.basePath;
      log.info({ version: VERSION, commit: COMMIT, url, adminUrl }, "listening");
    }
  }
  const code = await Promise.race([start().then(() => exitCode), exitCode]);

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
  return signatures.length > 0 || outcomes > 0 ? 1 : code;
}

if (import.meta.main) void main(process.argv.slice(2)).then((code) => process.exit(code));
