/** What all clients do about failures: wait, or stop with the reason. */
import { setTimeout as sleep } from "node:timers/promises";

const MAX_WAIT_SECONDS = 60;
const TIMEOUT_MS = 90_000;

/**
 * Codes of a collect that moved nothing. For any other see its `moved`: a transaction may be in
 * flight or have landed.
 */
const NOTHING_MOVED_CODES = ["INVALID_SOCIAL_ID", "INSUFFICIENT_FUNDS", "RATE_LIMITED"];

/**
 * A `fetch` for any client. A 429 or 503 means that nothing was done: waits for the seconds in
 * Retry-After and retries, unless the wait is too long. The caller decides about a failed collect.
 */
export async function fetchWithRetry(
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const request = new Request(input, init);
  for (let waited = 0; ;) {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const response = await fetch(request.clone(), { signal });
    const seconds = Number(response.headers.get("retry-after") ?? NaN);
    const isRefused = response.status === 429 || response.status === 503;
    if (!isRefused || !(waited + seconds <= MAX_WAIT_SECONDS)) return response;
    await response.body?.cancel();
    console.log(`HTTP ${response.status}: retrying in ${seconds} s`);
    await sleep(seconds * 1_000);
    waited += seconds;
  }
}

/** The base URL and the handle on the command line. */
export function readArguments(): { baseUrl: string; handle: string } {
  const [baseUrl, handle = "creator"] = process.argv.slice(2);
  return {
    baseUrl: baseUrl ?? fail("The base URL is missing: node <example> <base URL> [handle]"),
    handle,
  };
}

/**
 * Stops after a failed lookup. `code` is absent if there was no response, or it was not the
 * service's.
 */
export function failLookup(handle: string, code: string | undefined, message: string): never {
  fail(`Could not look up ${handle}: ${code ?? "no response"}: ${message}`);
}

/** Stops after a failed collect. */
export function failCollect(code: string | undefined, message: string): never {
  if (code && NOTHING_MOVED_CODES.includes(code))
    fail(`Nothing was collected: ${code}: ${message}`);
  fail(
    `It is not known whether the fees were moved: ${code ?? "no response"}: ${message}\n` +
      "If a transaction is named, look it up. Collecting again is safe.",
  );
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
