import { readConfig, type Environment } from "../../src/config.ts";
import { createGateway } from "../../src/gateway.ts";
import { listen } from "../../src/http/server.ts";
import { createLogger, type DestinationStream } from "../../src/observability/log.ts";

/**
 * Runs a gateway in this process, as `src/main.ts` does. Redis answers within `redisAnswerTimeoutMs`: the default of
 * 120 ms is too short for a slow machine.
 */
export async function runReplica(
  env: Environment,
  { redisAnswerTimeoutMs, logStream }: { redisAnswerTimeoutMs: number; logStream?: DestinationStream },
) {
  const config = readConfig(env);
  const log = createLogger(config.logLevel, logStream);
  const gateway = createGateway(config, { log, redisAnswerTimeoutMs });
  await gateway.start();
  const server = await listen(gateway.handleNode, config);
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
  const { url } = await runReplica(process.env, { redisAnswerTimeoutMs: Number(process.argv[2]) });
  process.stdout.write(`${JSON.stringify({ url })}\n`);
}
