/**
 * Plays the attacks of attacks.ts against a gateway on a sandbox, and prints what one request costs. The gateway has
 * core 0; the sandbox and the attacker have core 1.
 *
 *     node bench/prices/prices.ts [attacks whose name contains this]
 */
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { gatewayEnv, moveToLoadCore, startGateway, stopAll } from "../edge/servers.ts";
import { ATTACKS } from "./attacks.ts";
import { priceOf, warmUp } from "./price-of.ts";
import { createTarget } from "./target.ts";

const ROUNDS = { rounds: 7, requests: 10 };

moveToLoadCore();
const sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
try {
  const { url } = await startGateway({ ...gatewayEnv(sandbox.rpc.url), ...sandbox.env });
  const target = createTarget(url, sandbox);
  await warmUp(target);
  console.log("| attack | CPU ms per request | in lookups |\n|---|--:|--:|");
  for (const attack of ATTACKS.filter(({ name }) => name.includes(process.argv[2] ?? ""))) {
    const { ms, lookups } = await priceOf(attack, target, ROUNDS);
    console.log(`| ${attack.name} | ${ms.toFixed(2)} | ${lookups.toFixed(1)} |`);
  }
} finally {
  stopAll();
}
process.exit(0);
