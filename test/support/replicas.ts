import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { startProgram } from "./program.ts";

const SLOT_MS = 100;

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: any;
}

/** A sandbox, and two processes of the gateway before it that share the Redis at `redisUrl`. */
export async function startReplicas(redisUrl: string, env: Record<string, string> = {}) {
  const sandbox = await startSandbox({ slotMs: SLOT_MS, rpcPort: 0, socialPort: 0 });
  const programs = [0, 1].map(() =>
    startProgram({
      ...sandbox.env,
      NODE_ENV: "production",
      PORT: "0",
      TRUST_PROXY: "127.0.0.1",
      REDIS_URL: redisUrl,
      ...env,
    }),
  );
  const urls = await Promise.all(programs.map((program) => program.address(/"url":"(http[^"]+)"/)));
  let callers = 0;

  /** Asks one of the replicas, from a new address unless one is given. */
  async function request(replica: number, path: string, init: RequestInit = {}): Promise<Reply> {
    const headers = new Headers(init.headers);
    if (!headers.has("x-forwarded-for"))
      headers.set("x-forwarded-for", `10.${callers >> 16}.${(callers >> 8) & 255}.${callers++ & 255}`);
    const response = await fetch(urls[replica % 2]! + path, { ...init, headers });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  }

  return {
    sandbox,
    programs,
    request,
    lookup: (replica: number, handle: string, from?: string) =>
      request(
        replica,
        `/wallet/lookup?handle=${handle}`,
        from ? { headers: { "x-forwarded-for": from } } : {},
      ),
    collect: (replica: number, handle: string) =>
      request(replica, "/collect", {
        method: "POST",
        body: JSON.stringify({ socialId: sandbox.accounts.find((account) => account.handle === handle)!.id }),
      }),
    /** What was sent to the chain. */
    sends: () => sandbox.rpc.calls.filter(({ method }) => method === "sendTransaction"),
    /** The collects that landed, well or badly. */
    landedCollects: () =>
      sandbox.chain
        .ledger()
        .filter(({ logs }) =>
          logs.some((line) => line.includes(`${sandbox.env.LAUNCHPAD_PROGRAM_ID} invoke`)),
        ),
    async close() {
      for (const { child } of programs) child.kill("SIGKILL");
      await sandbox.close();
    },
  };
}
