import { destination, pino, type DestinationStream, type Logger } from "pino";
import pretty from "pino-pretty";

export type { Logger };

/** A line is seen so much later at most. */
const FLUSH_MS = 100;

/**
 * A logger of JSON lines on standard output, readable ones in a terminal, or where it is told. Secrets are
 * kept out by never being given to it: see `Config.secrets`.
 */
export function createLogger(level: string, stream: DestinationStream = standardOutput()): Logger {
  return pino({ level, base: null }, stream);
}

/** Each request has a line, so lines are written many at once, and without waiting for a slow reader; at exit all of them. */
function standardOutput(): DestinationStream {
  return process.stdout.isTTY
    ? pretty({ singleLine: true })
    : destination({ dest: 1, sync: false, minLength: 4096, periodicFlush: FLUSH_MS });
}
