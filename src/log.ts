import { pino, type DestinationStream, type Logger } from "pino";

export type { Logger };

/**
 * A logger of JSON lines, on standard output or where it is told. Secrets are kept out by never being
 * given to it: see `Config.secrets`.
 */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  return pino({ level, base: null }, destination);
}
