/**
 * The typical flow with fetch: look a handle up, collect its fees, show what came of it.
 *
 *     node examples/flow.ts <base url> [handle]
 *
 * With SANDBOX_RPC_URL, the address of the sandbox's chain, it puts new fees into the vault first. Needs
 * Node 22.18 or later, and no package.
 */
import { setTimeout as sleep } from "node:timers/promises";

interface Wallet {
  /** To be named as the creator of a token. */
  address: string;
  /** Decimal digits, more than a number can hold: keep it as a string. */
  socialId: string;
  /** Amounts are SOL with 4 digits after the point. */
  balance: { vault: string };
}

interface Collected {
  collected: string;
  newBalance: string;
  txSignature: string;
}

/** Any answer but a 2xx. NO_ANSWER is this client's own code: none came, or none that can be read. */
interface Refusal {
  error: string;
  message: string;
  /** Only with NOTHING_TO_COLLECT. */
  collected?: string;
}

const MAX_WAIT_SECONDS = 60;
const TIMEOUT_MS = 90_000;

const [baseUrl, handle = "creator"] = process.argv.slice(2);
if (!baseUrl) fail("The base url is missing: node examples/flow.ts <base url> [handle]");

// 1. Look the handle up. Keep the address, for the token, and the socialId, for collect.
const { address, socialId } = await lookUp(handle);
console.log(`${handle}: address ${address}, socialId ${socialId}`);

// 2. Launch a token with the address as its creator, on the launch platform; its trading fills the vault.
//    The sandbox has no trading, but a method that does the same.
if (process.env.SANDBOX_RPC_URL) {
  const fees = { jsonrpc: "2.0", id: 1, method: "sandboxAddCreatorFees", params: [address, 250_000_000] };
  const added = await request<{ result: string }>(process.env.SANDBOX_RPC_URL, post(fees));
  if ("error" in added) fail(`No fees were put into the vault: ${JSON.stringify(added.error)}`);
  console.log("New fees of 0.2500 SOL were put into the vault");
}

// 3. Look it up at any time, and read what waits in the vault.
const { balance } = await lookUp(handle);
console.log(`In the vault: ${balance.vault} SOL`);

// 4. Collect. Anyone may; the service pays for the transaction.
const result = await request<Collected>(`${baseUrl}/collect`, post({ socialId }));
if (!("error" in result)) {
  console.log(`Collected: ${result.collected} SOL`);
  console.log(`New balance: ${result.newBalance} SOL`);
  console.log(`Transaction: ${result.txSignature}`);
} else {
  switch (result.error) {
    case "NOTHING_TO_COLLECT":
      // An answer like any other. It may lack `collected`.
      console.log(`Nothing to collect (${result.collected ?? "0.0000"} SOL): ${result.message}`);
      break;
    case "INVALID_SOCIAL_ID":
    case "INSUFFICIENT_FUNDS":
    case "RATE_LIMITED":
      fail(`Nothing was collected: ${result.error}: ${result.message}`);
      break;
    default:
      // COLLECT_FAILED, or no answer at all: a transaction may be under way, or have landed.
      fail(
        `It is not known whether the fees were moved: ${result.error}: ${result.message}\n` +
          "Look the transaction up if one is named. To collect again is safe.",
      );
  }
}

async function lookUp(name: string): Promise<Wallet> {
  const wallet = await request<Wallet>(`${baseUrl}/wallet/lookup?handle=${encodeURIComponent(name)}`);
  if ("error" in wallet) fail(`${name} was not looked up: ${wallet.error}: ${wallet.message}`);
  return wallet;
}

function post(body: object): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

/**
 * Makes a request and reads its JSON. An answer with Retry-After (RATE_LIMITED, SERVICE_BUSY,
 * SOCIAL_RATE_LIMITED) means that nothing was done: asks again then, unless that takes too long.
 */
async function request<Body extends object>(url: string, init: RequestInit = {}): Promise<Body | Refusal> {
  try {
    for (let waited = 0; ;) {
      const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
      const answer = (await response.json()) as Body | Refusal;
      if (!response.ok && !("error" in answer)) throw new Error(`HTTP ${response.status}`);
      const seconds = Number(response.headers.get("retry-after") ?? NaN);
      if (!(waited + seconds <= MAX_WAIT_SECONDS)) return answer;
      console.log(`${"error" in answer ? answer.error : response.status}: asking again in ${seconds} s`);
      await sleep(seconds * 1_000);
      waited += seconds;
    }
  } catch (error) {
    const { message, cause } = error as Error;
    return { error: "NO_ANSWER", message: cause instanceof Error ? `${message}: ${cause.message}` : message };
  }
}

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
