/**
 * Runs the gateway as `src/main.ts` does, with the Redis answer timeout in milliseconds as its argument: the
 * default of 120 ms is too short for a slow machine.
 */
import { readConfig } from "../../src/config.ts";
import { createGateway } from "../../src/gateway.ts";
import { listen } from "../../src/http/server.ts";

const config = readConfig(process.env);
const gateway = createGateway(config, { redisAnswerTimeoutMs: Number(process.argv[2]) });
await gateway.start();
const { url } = await listen(gateway.handleNode, config);
process.stdout.write(`${JSON.stringify({ url })}\n`);
