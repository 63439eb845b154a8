import { createClient } from "./client.ts";
import { runMain, startProgram } from "./program.ts";
import type { TestSandbox } from "./sandbox.ts";
import { AMPLE_DEADLINES } from "./world.ts";

type Env = Record<string, string>;

/**
 * The variables of a production service, behind a proxy on this machine, whose chain and network
 * are the sandbox's.
 */
export const productionEnv = (sandbox: TestSandbox, env: Env): Env => ({
  ...sandbox.env,
  ...AMPLE_DEADLINES,
  NODE_ENV: "production",
  PORT: "0",
  TRUST_PROXY: "127.0.0.1",
  RPC_CALLS_PER_SECOND: "1000000",
  ...env,
});

/** Runs a production service in this process. */
export async function runProduction(sandbox: TestSandbox, env: Env = {}) {
  const program = runMain(productionEnv(sandbox, env));
  return { program, client: createClient(await program.address(/"url":"(http[^"]+)"/)) };
}

/** Starts a production service as a process. */
export async function startProduction(sandbox: TestSandbox, env: Env = {}) {
  const program = startProgram(productionEnv(sandbox, env));
  return { program, client: createClient(await program.address(/"url":"(http[^"]+)"/)) };
}
