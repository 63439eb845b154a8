import type { CallUpstream } from "../../../src/upstream/http.ts";

const WINDOW_SECONDS = 900;
const LATENCY_MS = 200;

/**
 * The network's lookups by handle and by id in memory, for tests with fake timers. It enforces its
 * limit of calls in 15 minutes, and counts each account that it returns as charged. Handles that
 * start with `nobody` do not exist.
 */
export function createMeteredNetwork(callsPerWindow = 300) {
  const meter = { calls: 0, charged: 0 };
  let resetSeconds = 0;
  let remaining = 0;

  /** Counts a call; false if none is left until the reset. */
  function admit(): boolean {
    const nowSeconds = Math.floor(Date.now() / 1000);
    if (nowSeconds >= resetSeconds) {
      resetSeconds = nowSeconds + WINDOW_SECONDS;
      remaining = callsPerWindow;
    }
    if (remaining === 0) return false;
    remaining--;
    return true;
  }

  function find(by: "usernames" | "ids", keys: readonly string[]): object {
    const { missing = [], found = [] } = Object.groupBy(keys, (key) =>
      key.startsWith("nobody") ? "missing" : "found",
    );
    meter.charged += found.length;
    return {
      data: found.map((key) => (by === "ids" ? { id: key, username: `id${key}` } : toAccount(key))),
      errors: missing.map((value) => ({
        value,
        type: "https://api.example/2/problems/resource-not-found",
      })),
    };
  }

  const callUpstream: CallUpstream = async ({ url }, read) => {
    await new Promise((resolve) => setTimeout(resolve, LATENCY_MS));
    meter.calls++;
    const isAdmitted = admit();
    const { searchParams } = new URL(url);
    const by = searchParams.has("ids") ? "ids" : "usernames";
    return read({
      status: isAdmitted ? 200 : 429,
      headers: {
        "x-rate-limit-limit": String(callsPerWindow),
        "x-rate-limit-remaining": String(remaining),
        "x-rate-limit-reset": String(resetSeconds),
      },
      text: JSON.stringify(
        isAdmitted ? find(by, searchParams.get(by)!.split(",")) : { title: "Too Many Requests" },
      ),
    });
  };

  return { callUpstream, meter };
}

const toAccount = (username: string) => ({
  id: BigInt(`0x${Buffer.from(username.slice(-7)).toString("hex")}`).toString(),
  username,
});
