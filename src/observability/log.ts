import { write, writeSync } from "node:fs";
import { pino, type DestinationStream, type Logger } from "pino";
import { prettyFactory } from "pino-pretty";
import { addMs, monotonicNow } from "../time/monotonic.ts";
import { codeOf } from "./thrown.ts";

export type { DestinationStream, Logger };

/** Lines are written together, after this time at the latest. */
const FLUSH_MS = 100;
const FLUSH_CHARACTERS = 65_536;
/** Lines beyond this are dropped. */
const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
/** How long the exit waits while the pipe is full. */
const EXIT_FLUSH_MS = 1_000;
const EXIT_RETRY_MS = 10;
const STANDARD_OUTPUT_FD = 1;

let standardOutput: DestinationStream | undefined;
/** All loggers share one buffer and one exit listener. The first line opens the stream. */
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

/**
 * Never blocks: lines wait in memory while a pipe or disk is full. pino's destination would retry
 * forever at exit.
 */
function openStandardOutput(): DestinationStream {
  // Reading `process.stdout` also makes writes to a full pipe fail instead of wait.
  const format = process.stdout.isTTY
    ? prettyFactory({ singleLine: true, colorize: true })
    : undefined;
  let lines = "";
  let unwritten = Buffer.alloc(0);
  let isWriting = false;
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (isWriting) return;
    isWriting = true;
    takeLines();
    write(STANDARD_OUTPUT_FD, unwritten, (error, writtenBytes) => {
      isWriting = false;
      unwritten = unwritten.subarray(writtenBytes);
      if (error) flushSoon();
      else if (unwritten.length > 0 || lines.length >= FLUSH_CHARACTERS) flush();
      else if (lines !== "") flushSoon();
    });
  }
  function takeLines(): void {
    if (unwritten.length > 0) return;
    unwritten = Buffer.from(lines);
    lines = "";
  }
  function flushSoon(): void {
    timer ??= setTimeout(flush, FLUSH_MS);
  }

  process.on("exit", () => {
    const deadline = addMs(monotonicNow(), EXIT_FLUSH_MS);
    // A write in progress ends by itself, so its text must not be written again.
    if (isWriting) unwritten = Buffer.alloc(0);
    takeLines();
    while (unwritten.length > 0 && monotonicNow() < deadline) {
      try {
        unwritten = unwritten.subarray(writeSync(STANDARD_OUTPUT_FD, unwritten));
        takeLines();
      } catch (error) {
        if (codeOf(error) !== "EAGAIN") return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, EXIT_RETRY_MS);
      }
    }
  });
  return {
    write(line) {
      if (lines.length >= MAX_WAITING_CHARACTERS) return;
      lines += format ? format(line) : line;
      if (lines.length >= FLUSH_CHARACTERS && unwritten.length === 0) flush();
      else if (!isWriting) flushSoon();
    },
  };
}
