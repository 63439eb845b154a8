import { setTimeout as sleep } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import { inspect } from "node:util";
import type { Environment } from "../config.ts";
import { toError } from "../observability/thrown.ts";
import { Settings } from "../variables.ts";

const REFRESH_MS = 1_000;
const TIMEOUT_MS = 5_000;
/** Of each list in a terminal: the JSON has more. */
const MOST_LISTED = 3;
/** Moves the cursor to the top, and clears what follows. */
const CLEAR = "\x1b[H\x1b[J";

export type Terminal = Pick<WriteStream, "columns" | "rows" | "write">;

/**
 * Prints the status of a running service: in a terminal what fits, refreshed until `stopped`
 * resolves, otherwise once as JSON. `url`: of the service's ADMIN_PORT, instead of the variables'.
 * Returns the exit code.
 */
export async function showStatus(
  env: Environment,
  options: {
    url: string | undefined;
    terminal: Terminal | undefined;
    stopped: Promise<unknown>;
    print: (text: string) => void;
    printError: (text: string) => void;
  },
): Promise<number> {
  const { terminal, stopped, print, printError } = options;
  const url = options.url ?? adminUrl(env);
  if (url === undefined) {
    printError(
      "ADMIN_PORT: expected the port at which the service shows its status. Set it and restart the service, or pass its URL: npm run status -- --url=http://10.0.0.5:4001",
    );
    return 1;
  }
  try {
    const first = await readStatus(url);
    if (!terminal) {
      print(JSON.stringify(first, undefined, 2));
      return 0;
    }
  } catch (error) {
    printError(problem(url, error));
    return 1;
  }
  const hasStopped = stopped.then(() => true);
  for (;;) {
    const status = await readStatus(url).catch((error: unknown) => problem(url, error));
    const { columns, rows } = terminal;
    const text = inspect(status, {
      depth: Infinity,
      breakLength: columns,
      maxArrayLength: MOST_LISTED,
    });
    const lines = [`Tributary at ${url}; Ctrl-C ends this`, ...text.split("\n")].slice(0, rows - 1);
    terminal.write(CLEAR + lines.map((line) => `${line.slice(0, columns)}\n`).join(""));
    if (await Promise.race([hasStopped, sleep(REFRESH_MS, false)])) return 0;
  }
}

/** Returns the URL of the service that these variables describe; undefined without ADMIN_PORT. */
function adminUrl(env: Environment): string | undefined {
  const present = Object.fromEntries(Object.entries(env).filter(([, text]) => text));
  const { data } = Settings.pick({ HOST: true, ADMIN_PORT: true, BASE_PATH: true }).safeParse(
    present,
  );
  if (!data?.ADMIN_PORT) return undefined;
  const { HOST, ADMIN_PORT, BASE_PATH } = data;
  const host = HOST === "::" || HOST === "0.0.0.0" ? "localhost" : HOST;
  return `http://${host.includes(":") ? `[${host}]` : host}:${ADMIN_PORT}${BASE_PATH}`;
}

async function readStatus(url: string): Promise<unknown> {
  const response = await fetch(`${url.replace(/\/$/, "")}/status`, {
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.json();
}

function problem(url: string, error: unknown): string {
  const { message, cause } = toError(error);
  const reason = cause === undefined ? message : toError(cause).message || message;
  return `No status at ${url}: ${reason}. Check that the service runs, and that this is its ADMIN_PORT with its BASE_PATH.`;
}
