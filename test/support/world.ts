import { collectDefaultMetrics } from "@prometheus-io/client";
import { readConfig } from "../../src/config.ts";
import { createGateway } from "../../src/gateway.ts";
import { CONNECTION_LIMITS, listen, type ConnectionLimits } from "../../src/http/server.ts";
import { createLogger } from "../../src/observability/log.ts";
import { createClient } from "./client.ts";
import { startTestSandbox } from "./sandbox.ts";

export type World = Awaited<ReturnType<typeof startWorld>>;

/** As SOLANA_RPC_URL: both JSON-RPC endpoints of the sandbox. */
export const BOTH_ENDPOINTS = "both endpoints";

/** Deadlines that no test waits for, however slow the machine is. Tests of a deadline set a short one. */
export const AMPLE_DEADLINES = {
  SOCIAL_TIMEOUT_MS: "600000",
  RPC_TIMEOUT_MS: "600000",
  COLLECT_TIMEOUT_MS: "600000",
};

/**
 * A sandbox and a gateway before it, listening on a free port: real clients over real HTTP on both sides.
 * `env` holds variables that differ from the defaults, `limits` those of connections.
 */
export async function startWorld(env: Record<string, string> = {}, limits: Partial<ConnectionLimits> = {}) {
  const sandbox = await startTestSandbox();
  const { secondRpc } = sandbox;
  if (env.SOLANA_RPC_URL === BOTH_ENDPOINTS)
    env = { ...env, SOLANA_RPC_URL: `${sandbox.rpc.url},${secondRpc.url}` };
  const config = readConfig({
    ...sandbox.env,
    ...AMPLE_DEADLINES,
    PORT: "0",
    LOG_LEVEL: "silent",
    TRUST_PROXY: "127.0.0.1",
    ...env,
  });
  const logLines: string[] = [];
  const log = createLogger("trace", { write: (line) => void logLines.push(line) });
  const gateway = createGateway(config, { log, sandboxAccounts: sandbox.accounts });
  collectDefaultMetrics({ register: gateway.registry });
  await gateway.ready;
  const server = await listen(gateway.handleNode, config, { ...CONNECTION_LIMITS, ...limits });

  return {
    ...createClient(server.url + config.basePath),
    sandbox,
    secondRpc,
    /** What the gateway has logged, at every level. */
    logLines,
    gateway,
    account: sandbox.account,
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
      await sandbox.close();
    },
  };
}
