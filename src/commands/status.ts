import type { Environment } from "../config.ts";
import { toError } from "../observability/thrown.ts";

const TIMEOUT_MS = 5_000;

/**
 * Prints the status of a running service as JSON. `url`: of the service's ADMIN_PORT, by default
 * the variables'. Returns the exit code.
 */
export async function showStatus(
  env: Environment,
  options: {
    url: string | undefined;
    print: (text: string) => void;
    printError: (text: string) => void;
  },
): Promise<number> {
  const { url = adminUrl(env), print, printError } = options;
  if (url === undefined) {
    printError(
      "ADMIN_PORT: expected the port at which the service shows its status. Set it and restart the service, or pass its URL: npm run status -- --url=http://10.0.0.5:4001",
    );
    return 1;
  }
  try {
    const response = await fetch(`${url.replace(/\/$/, "")}/status`, {
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    print(JSON.stringify(await response.json(), undefined, 2));
    return 0;
  } catch (error) {
    const { message, cause } = toError(error);
    const reason = toError(cause ?? error).message || message;
    printError(
      `No status at ${url}: ${reason}. Check that the service runs, and that this is its ADMIN_PORT with its BASE_PATH.`,
    );
    return 1;
  }
}

/** Returns the URL of the service that these variables describe; undefined without ADMIN_PORT. */
function adminUrl({ HOST, ADMIN_PORT, BASE_PATH = "" }: Environment): string | undefined {
  if (!ADMIN_PORT) return undefined;
  const host = !HOST || HOST === "::" || HOST === "0.0.0.0" ? "localhost" : HOST;
  return `http://${host.includes(":") ? `[${host}]` : host}:${ADMIN_PORT}${BASE_PATH}`;
}
