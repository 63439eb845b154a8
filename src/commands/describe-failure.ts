import { PreflightError } from "../checks/preflight.ts";
import { ConfigError, VARIABLE_NAMES, type Environment } from "../config.ts";
import { warnAboutUnknown } from "./unknown-variables.ts";

/** What to print when a command fails. */
export function describeFailure(error: unknown, env: Environment): unknown[] {
  const { code, message, syscall, port } = error as NodeJS.ErrnoException & { port?: number };
  if (error instanceof ConfigError) {
    const hints = warnAboutUnknown(env, VARIABLE_NAMES).map((hint) => `  - ${hint}`);
    return [[message, ...hints].join("\n")];
  }
  if (error instanceof PreflightError) return [`Tributary cannot start: ${message}`];
  if (code === "EADDRINUSE") {
    const name = port === Number(env.ADMIN_PORT) ? "ADMIN_PORT" : "PORT";
    return [`Tributary cannot start: ${message}. Set ${name} to a free port, or to 0 for any.`];
  }
  if (syscall === "listen" || syscall === "getaddrinfo") {
    return [
      `Tributary cannot start: ${message}. HOST must be an address of this machine, and PORT one that this user may open.`,
    ];
  }
  return ["Tributary cannot start:", error];
}
