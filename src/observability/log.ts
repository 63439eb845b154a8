import { destination, pino, symbols, type DestinationStream, type Logger } from "pino";
import pretty from "pino-pretty";

export type { DestinationStream, Logger };

/** Lines are written together, after this time at the latest. */
const FLUSH_MS = 100;
const FLUSH_CHARACTERS = 65_536;
/** When standard output is read too slowly, lines beyond this buffer are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

let standardOutput: DestinationStream | undefined;
/** All loggers share its buffer and its listeners for the exit. Opened with the first line. */
const STANDARD_OUTPUT: DestinationStream = {
  write(line) {
    standardOutput ??= openStandardOutput();
    standardOutput.write(line);
  },
};

/**
 * Logs JSON lines to standard output (pretty-printed in a terminal) or to `stream`. There is no redaction:
 * never pass secrets to the log (see `Config.secrets`).
 */
export function createLogger(level: string, stream = STANDARD_OUTPUT): Logger {
  return pino({ level, base: null }, stream);
}

/**
 * Logs at level `info` a line whose members are already JSON: `"a":1,"msg":"text"`. Every request logs one, and
 * pino would take five times as long to build it from an object.
 */
export function logMembers(log: Logger, members: string): void {
  if (!log.isLevelEnabled("info")) return;
  const stream = (log as unknown as { [symbols.streamSym]: DestinationStream })[symbols.streamSym];
  stream.write(`{"level":${log.levels.values.info},"time":${Date.now()},${members}}\n`);
}

/** Never waits for a slow reader. Lines that are not yet written are written at exit. */
function openStandardOutput(): DestinationStream {
  if (process.stdout.isTTY) return pretty({ singleLine: true });
  const output = destination({ dest: 1, sync: false, maxLength: MAX_WAITING_BYTES });
  // A full disk loses lines but must not stop the service.
  output.on("error", () => undefined);
  let lines = "";
  let timer: NodeJS.Timeout | undefined;

  // Not the destination's `minLength`: it would copy all buffered lines for each new one.
  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    output.write(lines);
    lines = "";
  }
  process.on("exit", () => {
    if (lines === "") return;
    flush();
    output.flushSync();
  });
  return {
    write(line) {
      lines += line;
      if (lines.length >= FLUSH_CHARACTERS) flush();
      else timer ??= setTimeout(flush, FLUSH_MS);
    },
  };
}
