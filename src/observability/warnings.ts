import type { Logger } from "./log.ts";

/**
 * Lasting problems that the operator should know of: `/readyz` shows them, and each is logged once.
 */
export interface Warnings {
  /** Shows `message` until the subject is cleared. Logs it only if the subject had no warning. */
  raise(
    subject: string,
    message: string,
    logged?: { level?: "warn" | "error"; details?: object },
  ): void;
  /** Ends the subject's warning, if it has one, and logs `message`. */
  clear(subject: string, message: string): void;
  readonly has: (subject: string) => boolean;
  /** The messages, oldest first. */
  list(): string[];
}

export function createWarnings(log: Logger): Warnings {
  const messages = new Map<string, string>();
  return {
    raise(subject, message, { level = "warn", details = {} } = {}) {
      if (!messages.has(subject)) log[level](details, message);
      messages.set(subject, message);
    },
    clear(subject, message) {
      if (messages.delete(subject)) log.info(message);
    },
    has: (subject) => messages.has(subject),
    list: () => [...messages.values()],
  };
}
