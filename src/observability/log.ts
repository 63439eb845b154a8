import { destination, pino, type DestinationStream, type Logger } from "pino";
import pretty from "pino-pretty";

export type { Logger };

/** Lines are written with at most this delay. */
const FLUSH_MS = 100;
/** Unread lines beyond this are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * A logger of JSON lines on standard output (readable ones in a terminal) or on `stream`. Secrets stay out of
 * the log because nobody passes them to it: see `Config.secrets`.
 */
export function createLogger(level: string, stream: DestinationStream = standardOutput()): Logger {
  return pino({ level, base: null }, stream);
}

/** Every request logs a line, so lines are written in blocks and never wait for a slow reader; at exit all are written. */
function standardOutput(): DestinationStream {
  if (process.stdout.isTTY) return pretty({ singleLine: true });
  const stream = destination({
    dest: 1,
    sync: false,
    minLength: 4096,
    maxLength: MAX_WAITING_BYTES,
    periodicFlush: FLUSH_MS,
  });
  // A full disk loses lines but must not stop the service.
  stream.on("error", () => undefined);
  return stream;
}
