import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { endWithTests } from "../../test/support/ended-children.ts";
import { freePort } from "../../test/support/free-port.ts";
import { temporaryFolder } from "../../test/support/temporary-folder.ts";
import {
  LOGS_ERROR_LEVEL,
  LOGS_FOREIGN_CLUSTER,
  LOGS_REDIS_AWAY,
  LOGS_REDIS_BACK,
} from "./wording.ts";

const GATEWAY = new URL("gateway-with-gc.ts", import.meta.url).pathname;
/** Far longer than a start takes, even on a busy machine. */
const START_MS = 120_000;
const POLL_MS = 50;
const SIGNALS = 4;

/** A period of time, in milliseconds since 1970. */
export interface Period {
  readonly from: number;
  /** Infinity while the period lasts. */
  to: number;
}

export const overlaps = (periods: readonly Period[], from: number, to: number): boolean =>
  periods.some((period) => period.from <= to && period.to >= from);

export const toMegabytes = (bytes: number, digits = 0): string =>
  (bytes / 1024 / 1024).toFixed(digits);

export type Replica = Awaited<ReturnType<typeof startReplica>>;

/**
 * Starts a gateway process with only these variables. The process keeps its port when it restarts.
 */
export async function startReplica(env: Readonly<Record<string, string>>) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const folder = temporaryFolder();
  const down: Period[] = [];
  const withoutRedis: Period[] = [];
  const errors: string[] = [];
  let child: ChildProcess;

  function readLog(line: string): void {
    if (!line.startsWith("{")) {
      errors.push(line);
      return;
    }
    const { level, time, msg, ...rest } = JSON.parse(line) as {
      level: number;
      time: number;
      msg: string;
    };
    if (level >= LOGS_ERROR_LEVEL && !LOGS_FOREIGN_CLUSTER.test(msg))
      errors.push(`${msg} ${JSON.stringify(rest)}`);
    if (LOGS_REDIS_AWAY.test(msg)) begin(withoutRedis, time);
    else if (LOGS_REDIS_BACK.test(msg)) end(withoutRedis, time);
  }

  async function start(): Promise<void> {
    const giveUpAt = Date.now() + START_MS;
    begin(down);
    begin(withoutRedis);
    for (;;) {
      child = spawn(
        process.execPath,
        ["--disallow-code-generation-from-strings", "--expose-gc", GATEWAY],
        {
          cwd: folder,
          env: {
            PATH: process.env.PATH,
            NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
            ...env,
            NODE_ENV: "production",
            PORT: String(port),
          },
          stdio: ["ignore", "pipe", "pipe"],
        },
      );
      endWithTests(child);
      createInterface(child.stdout!).on("line", readLog);
      createInterface(child.stderr!).on("line", readLog);
      while (!hasEnded() && Date.now() < giveUpAt) {
        if (await answers("/livez")) {
          end(down);
          return;
        }
        await sleep(POLL_MS);
      }
      // The gateway exits if an endpoint shows another cluster. Start it again, as a supervisor
      // would.
      if (Date.now() > giveUpAt) throw new Error(`a replica does not start: ${errors.join("\n")}`);
    }
  }

  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const ended = async () => {
    if (!hasEnded()) await once(child, "exit");
  };
  const answers = (path: string) =>
    request(url + path, { reset: true }).then(
      async ({ statusCode, body }) => {
        await body.dump();
        return statusCode === 200;
      },
      () => false,
    );

  async function metrics(): Promise<(name: string) => number> {
    const { body } = await request(`${url}/metrics`, { reset: true });
    const text = await body.text();
    return (name) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
  }

  await start();
  return {
    url,
    /** Times when the process was not running, or was starting. */
    down: down as readonly Period[],
    /** Times when the process did not reach Redis, and so shared no state. */
    withoutRedis: withoutRedis as readonly Period[],
    /** The errors in the process's log, and output that is no log line. */
    errors: errors as readonly string[],
    metrics,
    isReady: () => answers("/readyz"),
    /** Kills the process, as a crash would. */
    async kill(): Promise<void> {
      begin(down);
      begin(withoutRedis);
      child.kill("SIGKILL");
      await ended();
    },
    /** Starts a killed process again. */
    start,
    /**
     * The memory of the process in bytes: the heap after a forced garbage collection, and the
     * resident memory.
     */
    async memory() {
      let heap = Infinity;
      let resident = 0;
      // Signal it several times, because the process may answer before it handles a signal.
      for (let i = 0; i < SIGNALS; i++) {
        child.kill("SIGUSR2");
        const read = await metrics();
        heap = Math.min(heap, read("nodejs_heap_size_used_bytes"));
        resident = read("process_resident_memory_bytes");
      }
      return { heap, resident };
    },
    /**
     * Stops the process as a deployment does; returns its exit code, which is 0 if no transaction
     * is in flight.
     */
    async stop(): Promise<number | null> {
      child.kill("SIGTERM");
      await ended();
      return child.exitCode;
    },
  };
}

/** Begins a period, unless the last one still lasts. */
export function begin(periods: Period[], at = Date.now()): void {
  if (periods.at(-1)?.to !== Infinity) periods.push({ from: at, to: Infinity });
}

export function end(periods: readonly Period[], at = Date.now()): void {
  const last = periods.at(-1);
  if (last?.to === Infinity) last.to = at;
}
