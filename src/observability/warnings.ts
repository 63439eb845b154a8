import type { Logger } from "./log.ts";

export type Warnings = ReturnType<typeof createWarnings>;

/**
 * Lasting problems that the operator should know of: `/readyz` shows them, and each is logged once.
 */
export function createWarnings(log: Logger) {
  const messages = new Map<string, string>();
  return {
    /** Shows `message` until the subject is cleared. Logs it only if the subject had no warning. */
    raise(
      subject: string,
      message: string,
      { level = "warn", details = {} }: { level?: "warn" | "error"; details?: object } = {},
    ): void {
      if (!messages.has(subject)) log[level](details, message);
      messages.set(subject, message);
    },
    /** Ends the subject's warning, if it has one, and logs `message`. */
    clear(subject: string, message: string): void {
      if (messages.delete(subject)) log.info(message);
    },
    has: (subject: string) => messages.has(subject),
    /** The messages, oldest first. */
    list: () => [...messages.values()],
  };
}
