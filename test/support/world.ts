import { vi } from "vitest";
import type { Overrides } from "../../src/services.ts";
import { createGateway } from "../../src/gateway.ts";
import { CONNECTION_LIMITS, listen, type Responder } from "../../src/http/server.ts";
import { createLogger } from "../../src/observability/log.ts";
import { configure, type Env } from "./configure.ts";
import { atOnce, createClient } from "./client.ts";
import { hold, isMethod, SHORT_WAITS, startTestSandbox, type TestSandbox } from "./sandbox.ts";

export type World = Awaited<ReturnType<typeof startWorld>>;

/** A value of SOLANA_RPC_URL that stands for both JSON-RPC endpoints of the sandbox. */
export const BOTH_ENDPOINTS = "both endpoints";

/** Deadlines that no test reaches, even on a slow machine. Tests of a deadline set a short one. */
export const AMPLE_DEADLINES = {
  SOCIAL_TIMEOUT_MS: "600000",
  RPC_TIMEOUT_MS: "600000",
  COLLECT_TIMEOUT_MS: "600000",
};

/**
 * Starts a sandbox and a gateway that uses it, on a free port; both sides use real HTTP.
 * `variables` are variables and constants of the configuration, or a function that chooses them
 * once the sandbox runs; `limits` are the connection limits, and `waits` replace {@link
 * SHORT_WAITS}.
 */
export async function startWorld(
  variables: Env | ((sandbox: TestSandbox) => Promise<Env>) = {},
  {
    waits,
    blocksToFinality,
    ...limits
  }: Partial<typeof CONNECTION_LIMITS> & { waits?: Overrides; blocksToFinality?: number } = {},
) {
  const sandbox = await startTestSandbox({ blocksToFinality });
  const { secondRpc } = sandbox;
  let env = typeof variables === "function" ? await variables(sandbox) : variables;
  if (env.SOLANA_RPC_URL === BOTH_ENDPOINTS)
    env = { ...env, SOLANA_RPC_URL: `${sandbox.rpc.url},${secondRpc.url}` };
  const { config, constants } = configure({
    ...sandbox.env,
    ...AMPLE_DEADLINES,
    PORT: "0",
    LOG_LEVEL: "silent",
    TRUST_PROXY: "127.0.0.1",
    // Tests of the plan of calls set a small one.
    RPC_CALLS_PER_SECOND: "1000000",
    ...env,
  });
  const logLines: string[] = [];
  const log = createLogger("trace", { write: (line) => void logLines.push(line) });
  const overrides = { ...SHORT_WAITS, ...constants, ...waits };
  const gateway = createGateway(config, { log, sandbox, overrides });
  await gateway.ready;
  let received = 0;
  const fetch: Responder["fetch"] = (...request) => {
    received++;
    return gateway.api.fetch(...request);
  };
  const server = await listen({ ...gateway.api, fetch }, config, {
    ...CONNECTION_LIMITS,
    ...limits,
  });
  const client = createClient(server.url + config.basePath);

  return {
    ...client,
    sandbox,
    secondRpc,
    /** Log lines of the gateway, of every level. */
    logLines,
    gateway,
    account: sandbox.account,
    /** How many requests the gateway has received. */
    receivedRequests: () => received,
    /** The JSON-RPC methods called since `forgetCalls`. */
    chainCalls: () => sandbox.rpc.calls.map(({ method }) => method),
    forgetCalls() {
      sandbox.rpc.calls.length = 0;
      sandbox.social.calls.length = 0;
    },
    clearFaults() {
      for (const { faults } of [sandbox.rpc, secondRpc, sandbox.social]) faults.clear();
    },
    /**
     * Collects an account `count` times at once: nothing is signed before the gateway has received
     * all requests.
     */
    async collectTogether(id: string, count: number) {
      const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
      const receivedBefore = received;
      const answers = atOnce(count, () => client.collect(id));
      await vi.waitUntil(() => received >= receivedBefore + count, { timeout: 200_000 });
      // Their bodies too: an event loop reads connections in the order in which they become
      // readable.
      for (let round = 0; round < 3; round++) await client.request("/livez");
      release();
      return answers;
    },
    async close() {
      gateway.drain();
      await server.close();
      await gateway.settled();
      gateway.close();
      await sandbox.close();
    },
  };
}
