import { collectDefaultMetrics } from "@prometheus-io/client";
import { readConfig } from "../../src/config.ts";
import { createGateway } from "../../src/gateway.ts";
import { CONNECTION_LIMITS, listen, type ConnectionLimits } from "../../src/http/server.ts";
import { createLogger } from "../../src/observability/log.ts";
import { createChainRpc } from "../../src/sandbox/rpc/rpc-server.ts";
import { startSandbox, type SandboxAccount } from "../../src/sandbox/sandbox.ts";

/** An answer, read. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: any;
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/** A blockhash lasts 150 of them, far longer than a test waits for one. */
const SLOT_MS = 100;

export const BOTH_ENDPOINTS = "both endpoints";

/**
 * A sandbox and a gateway before it, listening on a free port: real clients over real HTTP on both sides.
 * `env` holds variables that differ from the defaults, `limits` those of connections. Requests come from a new address each, as if
 * through a trusted proxy, unless they name one.
 */
export async function startWorld(env: Record<string, string> = {}, limits: Partial<ConnectionLimits> = {}) {
  const sandbox = await startSandbox({ slotMs: SLOT_MS, rpcPort: 0, socialPort: 0 });
  // A second endpoint of the same chain, for a gateway that is told of it: SOLANA_RPC_URL: BOTH_ENDPOINTS.
  const secondRpc = await createChainRpc({
    chain: sandbox.chain,
    launchpad: {
      launchpadProgramId: sandbox.env.LAUNCHPAD_PROGRAM_ID,
      ammProgramId: sandbox.env.LAUNCHPAD_AMM_PROGRAM_ID,
    },
    port: 0,
  });
  if (env.SOLANA_RPC_URL === BOTH_ENDPOINTS)
    env = { ...env, SOLANA_RPC_URL: `${sandbox.rpc.url},${secondRpc.url}` };
  const config = readConfig({
    ...sandbox.env,
    PORT: "0",
    LOG_LEVEL: "silent",
    TRUST_PROXY: "127.0.0.1",
    ...env,
  });
  const logLines: string[] = [];
  const log = createLogger("trace", { write: (line) => void logLines.push(line) });
  const gateway = createGateway(config, { log, playAccounts: sandbox.accounts });
  collectDefaultMetrics({ register: gateway.registry });
  await gateway.ready;
  const server = await listen(gateway.handleNode, config, { ...CONNECTION_LIMITS, ...limits });
  const url = server.url + config.basePath;
  let callers = 0;

  async function request(path: string, init: RequestInit = {}): Promise<Answer> {
    const headers = new Headers(init.headers);
    if (!headers.has("x-forwarded-for"))
      headers.set("x-forwarded-for", `10.${callers >> 16}.${(callers >> 8) & 255}.${callers++ & 255}`);
    const response = await fetch(url + path, { ...init, headers });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json");
    return {
      status: response.status,
      headers: response.headers,
      body: isJson && text ? JSON.parse(text) : text,
    };
  }

  return {
    sandbox,
    secondRpc,
    /** What the gateway has logged, at every level. */
    logLines,
    gateway,
    url,
    request,
    lookup: (handle: string, headers?: Record<string, string>) =>
      request(`/wallet/lookup?handle=${encodeURIComponent(handle)}`, headers ? { headers } : {}),
    collect: (socialId: string, headers?: Record<string, string>) =>
      request("/collect", {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ socialId }),
      }),
    graphql: (query: string, variables?: Record<string, unknown>, headers?: Record<string, string>) =>
      request("/graphql", {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ query, variables }),
      }),
    account(handle: string): SandboxAccount {
      const account = sandbox.accounts.find((candidate) => candidate.handle === handle);
      if (!account) throw new Error(`the sandbox has no ${handle}`);
      return account;
    },
    /** The methods that the chain was called with since `forgetCalls`. */
    chainCalls: () => sandbox.rpc.calls.map(({ method }) => method),
    forgetCalls() {
      sandbox.rpc.calls.length = 0;
      sandbox.social.calls.length = 0;
    },
    async close() {
      gateway.drain();
      await server.close();
      await gateway.settled();
      gateway.close();
      await Promise.all([sandbox.close(), secondRpc.close()]);
    },
  };
}
