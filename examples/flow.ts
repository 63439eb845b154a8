/**
 * The typical flow with fetch: look up a handle, collect its fees, print the result.
 *
 *     node examples/flow.ts <base URL> [handle] [mint ...]
 *
 * Mints name coins whose waiting fees to collect too, at most 10. Needs Node 22.18 or later, and no
 * packages.
 */
import { setTimeout as sleep } from "node:timers/promises";

interface Wallet {
  /** The creator to name when launching a token. */
  address: string;
  /** Decimal digits. Keep it a string, because a number would lose digits. */
  socialId: string;
  /** In SOL with 4 decimals, like all amounts. */
  balance: { vault: string };
}

interface Collected {
  collected: string;
  newBalance: string;
  txSignature: string;
  /** What still waits on the coins; only if the request names mints. */
  remaining?: string;
}

/**
 * Any response but a 2xx. NO_RESPONSE is this client's own code, for no response or an unreadable
 * one.
 */
interface Failure {
  error: string;
  message: string;
  /** Only with NOTHING_TO_COLLECT. */
  collected?: string;
}

const MAX_WAIT_SECONDS = 60;
const TIMEOUT_MS = 90_000;

const [baseUrl, handle = "creator", ...mints] = process.argv.slice(2);
if (!baseUrl) fail("The base URL is missing: node examples/flow.ts <base URL> [handle] [mint ...]");

// 1. Look up the handle. Keep the address for the token, and the socialId for collect.
const { address, socialId } = await lookUp(handle);
console.log(`${handle}: address ${address}, socialId ${socialId}`);

// 2. On the launch platform, launch a token with the address as its creator. Trading fills the
//    vault.

// 3. Look it up again at any time, to see what is in the vault.
const { balance } = await lookUp(handle);
console.log(`In the vault: ${balance.vault} SOL`);

// 4. Collect. Anyone may do this; the service pays the transaction fee.
const result = await request<Collected>(`${baseUrl}/collect`, post({ socialId, mints }));
if (!("error" in result)) {
  console.log(`Collected: ${result.collected} SOL`);
  console.log(`New balance: ${result.newBalance} SOL`);
  console.log(`Transaction: ${result.txSignature}`);
  // As many coins are collected as fit into one transaction.
  if (mints.length > 0) console.log(`Still waiting on the coins: ${result.remaining} SOL`);
} else {
  switch (result.error) {
    case "NOTHING_TO_COLLECT":
      // A normal result. `collected` may be missing.
      console.log(`Nothing to collect (${result.collected ?? "0.0000"} SOL): ${result.message}`);
      break;
    case "INVALID_SOCIAL_ID":
    case "INVALID_MINT":
    case "INVALID_MINIMUM":
    case "INSUFFICIENT_FUNDS":
    case "RATE_LIMITED":
      fail(`Nothing was collected: ${result.error}: ${result.message}`);
      break;
    default:
      // COLLECT_FAILED, or no response: a transaction may be in flight or have landed.
      fail(
        `It is not known whether the fees were moved: ${result.error}: ${result.message}\n` +
          "If a transaction is named, look it up. Collecting again is safe.",
      );
  }
}

async function lookUp(name: string): Promise<Wallet> {
  const query = new URLSearchParams([["handle", name], ...mints.map((mint) => ["mint", mint])]);
  const wallet = await request<Wallet>(`${baseUrl}/wallet/lookup?${query}`);
  if ("error" in wallet) fail(`Could not look up ${name}: ${wallet.error}: ${wallet.message}`);
  return wallet;
}

function post(body: object): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
}

/**
 * Sends a request and parses the JSON. A 429 or 503 means that nothing was done: waits for the
 * seconds in Retry-After and retries, unless the wait is too long.
 */
async function request<Body extends object>(
  url: string,
  init: RequestInit = {},
): Promise<Body | Failure> {
  try {
    for (let waited = 0; ;) {
      const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
      const answer = (await response.json()) as Body | Failure;
      if (!response.ok && !("error" in answer)) throw new Error(`HTTP ${response.status}`);
      const seconds = Number(response.headers.get("retry-after") ?? NaN);
      const isRefused = response.status === 429 || response.status === 503;
      if (!isRefused || !(waited + seconds <= MAX_WAIT_SECONDS)) return answer;
      console.log(
        `${"error" in answer ? answer.error : response.status}: retrying in ${seconds} s`,
      );
      await sleep(seconds * 1_000);
      waited += seconds;
    }
  } catch (error) {
    const { message, cause } = error as Error;
    return {
      error: "NO_RESPONSE",
      message: cause instanceof Error ? `${message}: ${cause.message}` : message,
    };
  }
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
