import { destination, pino, type DestinationStream, type Logger } from "pino";
import pretty from "pino-pretty";

export type { Logger };

/** The longest time that a line stays in the buffer. */
const FLUSH_MS = 100;
/** When standard output is read too slowly, lines beyond this buffer are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/**
 * Logs JSON lines to standard output (pretty-printed in a terminal) or to `stream`. There is no redaction:
 * never pass secrets to the log (see `Config.secrets`).
 */
export function createLogger(level: string, stream: DestinationStream = standardOutput()): Logger {
  return pino({ level, base: null }, stream);
}

/** Every request logs a line, so lines are buffered and never wait for a slow reader. The buffer is flushed at exit. */
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
