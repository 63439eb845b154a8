import { setTimeout as sleep } from "node:timers/promises";
import type { WriteStream } from "node:tty";
import type { Environment } from "../config.ts";
import { formatSol, toLamports } from "../chain/primitives/lamports.ts";
import { toError } from "../observability/thrown.ts";
import type { Status } from "../status.ts";
import { Settings } from "../variables.ts";

const REFRESH_MS = 1_000;
const TIMEOUT_MS = 5_000;
/** Of each list in the table: the JSON has more. */
const MOST_ROWS = 10;
/** Moves the cursor to the top, and clears what follows. */
const CLEAR = "\x1b[H\x1b[J";

export type Terminal = Pick<WriteStream, "columns" | "rows" | "write">;

/**
 * Prints the status of a running service: in a terminal as a table that refreshes until `stopped`
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
    const lines = await readStatus(url).then(toTable, (error: unknown) => [problem(url, error)]);
    const { rows } = terminal;
    // Some terminals report none.
    const columns = terminal.columns || 80;
    const wrapped = [`Tributary at ${url}; Ctrl-C ends this`, "", ...lines].flatMap(
      (line) => line.match(new RegExp(`.{1,${columns}}`, "g")) ?? "",
    );
    const shown = wrapped.slice(0, rows - 1);
    terminal.write(CLEAR + shown.map((line) => `${line}\n`).join(""));
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

async function readStatus(url: string): Promise<Status> {
  const response = await fetch(`${url.replace(/\/$/, "")}/status`, {
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return (await response.json()) as Status;
}

function problem(url: string, error: unknown): string {
  const { message, cause } = toError(error);
  const reason = cause === undefined ? message : toError(cause).message || message;
  return `No status at ${url}: ${reason}. Check that the service runs, and that this is its ADMIN_PORT with its BASE_PATH.`;
}

/** Returns the lines of the table. */
function toTable(status: Status): string[] {
  const { at, version, commit, upSeconds, readyz, feePayer } = status;
  const { endpoints, network, collects, budgets, replicas, caches, streams } = status;
  const ago = (time: string) => `${Math.round((Date.parse(at) - Date.parse(time)) / 1_000)} s ago`;
  const left = (time: string) => {
    const seconds = Math.ceil((Date.parse(time) - Date.parse(at)) / 1_000);
    return seconds > 0 ? `for ${seconds} s` : "no longer";
  };
  const percent = (part: number) => `${Math.floor(100 * part)}%`;
  const quotas = network.quota.map(
    ({ kind, remaining, limit, resetAt }) =>
      `${kind} ${remaining} of ${limit} left ${left(resetAt)}`,
  );
  const circuit = [
    `circuit ${network.circuit}`,
    ...(network.openUntil === undefined ? [] : [left(network.openUntil)]),
    ...(network.lastError === undefined ? [] : [`(${network.lastError})`]),
  ].join(" ");
  const limited = network.limitedUntil === undefined ? [] : [`429 ${left(network.limitedUntil)}`];

  return [
    `Time      ${at.slice(11, 19)} UTC; version ${version} (${commit}), up for ${upSeconds} s`,
    `Ready     ${readyz.reasons?.join(", ") ?? "yes"}`,
    ...(readyz.warnings ?? []).map((warning) => `Warning   ${warning}`),
    `Fee payer ${feePayer.address} holds ${feePayer.lamports === undefined ? "an unknown amount" : `${formatSol(toLamports(BigInt(feePayer.lamports)))} SOL`}`,
    `Replicas  ${replicas.count}${replicas.redis === undefined ? ", no Redis" : `, Redis is ${replicas.redis}`}`,
    `Network   ${[network.host, circuit, ...limited, `${network.waiting} accounts wait`].join(", ")}`,
    `Quota     ${quotas.join(", ") || "unknown"}`,
    `Streams   ${streams.open}, which follow ${streams.accounts} of at most ${streams.most} accounts`,
    `Caches    ${Object.entries(caches)
      .map(([name, { size, most }]) => `${name} ${size}/${most}`)
      .join(", ")}`,
    `Left      ${Object.entries(budgets.left)
      .map(([name, part]) => `${name} ${percent(part)}`)
      .join(", ")}`,
    "",
    ...inColumns(
      ["ENDPOINT", "STATE", "SLOT", "CALLS", "FAILED", "BACKS OFF", "LAST ERROR"],
      endpoints.map(({ host, state, slot, calls, failing, lastError }) => [
        host,
        state,
        slot ?? "",
        calls.made,
        calls.failed,
        failing.map(({ kind, backsOffUntil }) => `${kind} ${left(backsOffUntil)}`).join(", "),
        lastError ? `${lastError.message.replace(` at ${host}`, "")}, ${ago(lastError.at)}` : "",
      ]),
    ),
    "",
    ...inColumns(
      ["CHAIN CALLS", "PER SECOND", "WAITING"],
      Object.entries(budgets.chainCalls.uses).map(([use, { perSecond, waiting }]) => [
        use,
        perSecond.toFixed(1),
        waiting,
      ]),
    ),
    `of at most ${Math.round(budgets.chainCalls.perSecond)} per second`,
    "",
    ...inColumns(
      ["COLLECTS", "STATE", "AGE", "WAITERS", "SIGNATURE"],
      collects.open.map(({ unit, state, ageSeconds, waiters, signature }) => [
        // So that the signature fits, to be copied.
        `${unit.slice(0, 6)}…${unit.slice(-4)}`,
        state,
        `${ageSeconds} s`,
        waiters,
        signature ?? "",
      ]),
      collects.openCount,
    ),
    "",
    ...inColumns(
      ["BACKS OFF", "UNTIL", "AFTER A FAILED"],
      collects.backingOff.map(({ key, until, after }) => [key, left(until), after]),
      collects.backingOffCount,
    ),
  ];
}

/** Aligns rows below their titles. `count`: of all rows, if these may be only the first. */
function inColumns(
  titles: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  count = rows.length,
): string[] {
  const shown = rows.slice(0, MOST_ROWS).map((row) => row.map(String));
  const lines = [titles, ...shown];
  const widths = titles.map((_, i) => Math.max(...lines.map((line) => line[i]!.length)));
  const more = count - shown.length;
  return [
    ...lines.map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join("  ")
        .trimEnd(),
    ),
    ...(rows.length === 0 ? ["none"] : []),
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
}
