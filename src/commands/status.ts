import { setTimeout as sleep } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import { inspect } from "node:util";
import type { Environment } from "../config.ts";
import { isObject } from "../contract/parse-json.ts";
import { toError } from "../observability/thrown.ts";

const REFRESH_MS = 1_000;
const TIMEOUT_MS = 5_000;
/** Of each list: the JSON has more. */
const MOST_ENTRIES = 10;
const ONE_LINE = { depth: null, breakLength: Infinity, compact: true } as const;
/** Moves the cursor to the top, and clears what follows. */
const CLEAR = "\x1b[H\x1b[J";

export type Terminal = Pick<WriteStream, "columns" | "rows" | "write">;

/**
 * Prints the status of a running service: in a terminal as lines that refresh until a signal,
 * otherwise once as JSON. `url`: of the service's ADMIN_PORT, instead of the variables'. Returns the
 * exit code.
 */
export async function showStatus(
  env: Environment,
  options: {
    url: string | undefined;
    terminal?: Terminal | undefined;
    print: (text: string) => void;
    printError: (text: string) => void;
    onSignal: (stop: () => void) => void;
  },
): Promise<number> {
  const { terminal, print, printError, onSignal } = options;
  const url = options.url ?? adminUrl(env);
  if (url === undefined) {
    printError(
      "ADMIN_PORT: expected the port at which the service shows its status. Set it and restart the service, or pass its URL: npm run status -- --url=http://10.0.0.5:4001",
    );
    return 1;
  }
  if (!terminal) {
    try {
      print(JSON.stringify(await readStatus(url), undefined, 2));
      return 0;
    } catch (error) {
      printError(problem(url, error));
      return 1;
    }
  }
  const stopped = new Promise<true>((resolve) => {
    onSignal(() => {
      resolve(true);
    });
  });
  for (;;) {
    const lines = await readStatus(url).then(
      (status) => toLines(status),
      (error: unknown) => [problem(url, error)],
    );
    // Some terminals report none.
    const columns = terminal.columns || 80;
    const wrapped = [`Tributary at ${url}; Ctrl-C ends this`, "", ...lines].flatMap(
      (line) => line.match(new RegExp(`.{1,${columns}}`, "g")) ?? "",
    );
    const shown = wrapped.slice(0, terminal.rows - 1);
    terminal.write(CLEAR + shown.map((line) => `${line}\n`).join(""));
    if (await Promise.race([stopped, sleep(REFRESH_MS, false)])) return 0;
  }
}

/** Returns the URL of the service that these variables describe; undefined without ADMIN_PORT. */
function adminUrl({ HOST, ADMIN_PORT, BASE_PATH = "" }: Environment): string | undefined {
  if (!ADMIN_PORT) return undefined;
  const host = !HOST || HOST === "::" || HOST === "0.0.0.0" ? "localhost" : HOST;
  return `http://${host.includes(":") ? `[${host}]` : host}:${ADMIN_PORT}${BASE_PATH}`;
}

async function readStatus(url: string): Promise<object> {
  const response = await fetch(`${url.replace(/\/$/, "")}/status`, {
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return (await response.json()) as object;
}

function problem(url: string, error: unknown): string {
  const { message, cause } = toError(error);
  const reason = cause === undefined ? message : toError(cause).message || message;
  return `No status at ${url}: ${reason}. Check that the service runs, and that this is its ADMIN_PORT with its BASE_PATH.`;
}

/** Returns a line for each member of a status of any version, and for each entry of a list. */
function toLines(status: object, prefix = ""): string[] {
  return Object.entries(status).flatMap(([name, value]: [string, unknown]) => {
    const title = prefix + name;
    if (Array.isArray(value) && value.length > 0)
      return [title, ...value.slice(0, MOST_ENTRIES).map((entry) => `  ${toText(entry)}`)];
    const isGroup = isObject(value) && Object.values(value).some(Array.isArray);
    return isGroup ? toLines(value, `${title} `) : `${title}: ${toText(value)}`;
  });
}

/** Formats a value in one line. */
const toText = (value: unknown): string =>
  typeof value === "string" ? value : inspect(value, ONE_LINE);
