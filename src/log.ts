import { destination, pino, type DestinationStream, type Logger } from "pino";
import pretty from "pino-pretty";

export type { Logger };

/**
 * A logger of JSON lines on standard output, readable ones in a terminal, or where it is told. Secrets are
 * kept out by never being given to it: see `Config.secrets`.
 */
export function createLogger(level: string, stream: DestinationStream = standardOutput()): Logger {
  return pino({ level, base: null }, stream);
}

/** Written without waiting for it: each request has a line, and a slow reader must not hold up requests. */
function standardOutput(): DestinationStream {
  return process.stdout.isTTY ? pretty({ singleLine: true }) : destination({ dest: 1, sync: false });
}
