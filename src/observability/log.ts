import { pino, type DestinationStream, type Logger } from "pino";
import { prettyFactory } from "pino-pretty";
import { addMs, monotonicNow, NEVER } from "../time/monotonic.ts";

export type { DestinationStream, Logger };

/** Lines are written together, after this time or at this length at the latest. */
const FLUSH_MS = 100;
const FLUSH_CHARACTERS = 8_192;
/** Lines beyond this are dropped. */
const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
/** How long the exit waits while the pipe is full. */
const EXIT_FLUSH_MS = 1_000;
const STANDARD_OUTPUT_FD = 1;

let standardOutput: DestinationStream | undefined;
let droppedCount = 0;
let dropReporter: Logger | undefined;
/** All loggers share one buffer. The first line opens the stream. */
const STANDARD_OUTPUT: DestinationStream = {
  write(line) {
    standardOutput ??= openStandardOutput();
    standardOutput.write(line);
  },
};

/**
 * Logs JSON lines; pretty-prints them in a terminal. Redacts nothing: never pass secrets
 * (`Config.secrets`) to the log.
 */
export function createLogger(level: string, stream = STANDARD_OUTPUT): Logger {
  return pino({ level, base: null }, stream);
}

/** How many lines were dropped, because nobody read standard output. */
export const droppedLines = () => droppedCount;

/** Lets `log` say how many lines were dropped, once standard output takes lines again. */
export function reportDroppedLines(log: Logger): void {
  dropReporter = log;
}

/** Never blocks: lines wait in memory while a pipe or disk is full, and for a second at the exit. */
function openStandardOutput(): DestinationStream {
  // Reading `process.stdout` also makes writes to a full pipe fail instead of wait.
  const isTerminal = process.stdout.isTTY;
  let isFailing = false;
  let reportedCount = 0;
  let deadline = NEVER;
  const output = pino.destination({
    dest: STANDARD_OUTPUT_FD,
    sync: false,
    periodicFlush: FLUSH_MS,
    minLength: FLUSH_CHARACTERS,
    maxLength: MAX_WAITING_CHARACTERS,
    retryEAGAIN: () => monotonicNow() < deadline,
  });
  output
    .on("error", () => (isFailing = true))
    .on("write", () => (isFailing = false))
    .on("drop", () => droppedCount++)
    // All lines are written.
    .on("drain", () => {
      const lines = droppedCount - reportedCount;
      if (lines === 0) return;
      reportedCount = droppedCount;
      dropReporter?.warn(
        { lines },
        "log lines were dropped: standard output was full for too long",
      );
    });
  const flushSync = output.flushSync.bind(output);
  // Pino calls it at the exit, and would repeat a failing write forever.
  output.flushSync = () => {
    if (isFailing) return;
    deadline = addMs(monotonicNow(), EXIT_FLUSH_MS);
    try {
      flushSync();
    } catch {
      // The pipe is still full.
    }
  };
  if (!isTerminal) return output;
  const format = prettyFactory({ singleLine: true, colorize: true, ignore: "instance" });
  return {
    write(line) {
      output.write(format(line));
    },
  };
}
