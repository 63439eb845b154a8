import { destination, pino, type DestinationStream, type Logger } from "pino";
import pretty from "pino-pretty";

export type { Logger };

/** A line is seen so much later at most. */
const FLUSH_MS = 100;
/** Of lines that nobody takes; those beyond are lost. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * A logger of JSON lines on standard output, readable ones in a terminal, or where it is told. Secrets are
 * kept out by never being given to it: see `Config.secrets`.
 */
export function createLogger(level: string, stream: DestinationStream = standardOutput()): Logger {
  return pino({ level, base: null }, stream);
}

/** Each request has a line, so lines are written many at once, and without waiting for a slow reader; at exit all of them. */
function standardOutput(): DestinationStream {
  if (process.stdout.isTTY) return pretty({ singleLine: true });
  const stream = destination({
    dest: 1,
    sync: false,
    minLength: 4096,
    maxLength: MAX_WAITING_BYTES,
    periodicFlush: FLUSH_MS,
  });
  // A disk that is full costs lines, and not the service.
  stream.on("error", () => undefined);
  return stream;
}
