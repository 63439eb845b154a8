import { PreflightError } from "../checks/preflight.ts";
import { ConfigError, type Environment } from "../config.ts";

/**
 * Returns what to say when a command fails, and the error if it is unexpected. `hints`: warnings
 * about variables, which may explain the failure.
 */
export function describeFailure(
  error: unknown,
  env: Environment,
  hints: readonly string[],
): [text: string, error?: unknown] {
  const { code, message, syscall, port } = error as NodeJS.ErrnoException & { port?: number };
  if (error instanceof ConfigError) return [[message, ...hints].join("\n  - ")];
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
