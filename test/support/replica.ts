/**
 * The gateway in a process of its own, as `src/main.ts` starts it, but with the time that it waits for an answer
 * of Redis, in milliseconds, as its argument: the 120 ms of the service are short for a busy machine.
 */
import { readConfig } from "../../src/config.ts";
import { createGateway } from "../../src/gateway.ts";
import { listen } from "../../src/http/server.ts";

const config = readConfig(process.env);
const gateway = createGateway(config, { redisAnswerTimeoutMs: Number(process.argv[2]) });
await gateway.start();
const { url } = await listen(gateway.handleNode, config);
process.stdout.write(`${JSON.stringify({ url })}\n`);
