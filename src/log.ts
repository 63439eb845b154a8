import { pino, type Logger } from "pino";

export type { Logger };

/** A logger of JSON lines. Secrets are kept out by never being given to it: see `Config.secrets`. */
export function createLogger(level: string): Logger {
  return pino({ level, base: null });
}
