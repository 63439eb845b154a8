import { createClient } from "./client.ts";
import { startProgram } from "./program.ts";
import type { TestSandbox } from "./sandbox.ts";
import { AMPLE_DEADLINES } from "./world.ts";

/** Starts a production process, behind a proxy on this machine, whose chain and network are the sandbox's. */
export async function startProduction(sandbox: TestSandbox, env: Record<string, string> = {}) {
  const program = startProgram({
    ...sandbox.env,
    ...AMPLE_DEADLINES,
    NODE_ENV: "production",
    PORT: "0",
    TRUST_PROXY: "127.0.0.1",
    ...env,
  });
  return { program, client: createClient(await program.address(/"url":"(http[^"]+)"/)) };
}
