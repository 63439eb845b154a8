import { createGateway } from "../../src/gateway.ts";
import { listen } from "../../src/http/server.ts";
import { createLogger, type DestinationStream } from "../../src/observability/log.ts";
import { configure, type Env } from "./configure.ts";

/** Longer than a test on any machine. */
const LONG_WINDOW_SECONDS = 3_600;

/**
 * Runs a gateway in this process, as `src/main.ts` does. Redis answers within
 * `redisAnswerTimeoutMs`: the default of 120 ms is too short for a slow machine.
 */
export async function runReplica(
  env: Env,
  {
    redisAnswerTimeoutMs,
    logStream,
  }: { redisAnswerTimeoutMs: number; logStream?: DestinationStream },
) {
  const { config } = configure(env);
  const log = createLogger(config.logLevel, logStream);
  const overrides = { redisAnswerTimeoutMs, rateLimitWindowSeconds: LONG_WINDOW_SECONDS };
  const gateway = createGateway(config, { log, overrides });
  await gateway.start();
  const server = await listen(gateway.api, config);
  return {
    url: server.url,
    async close() {
      await server.close();
      gateway.close();
    },
  };
}

// As a process, with the timeout as its argument.
if (import.meta.main) {
  const { url } = await runReplica(process.env as Env, {
    redisAnswerTimeoutMs: Number(process.argv[2]),
  });
  process.stdout.write(`${JSON.stringify({ url })}\n`);
}
