import { readPlatformChecks } from "./platform-checks.ts";
import type { Lamports } from "../chain/primitives/lamports.ts";
import type { Rpc } from "../chain/rpc/rpc-client.ts";
import type { Config } from "../config.ts";
import type { Logger } from "../observability/log.ts";
import type { SocialClient } from "../social/api-client.ts";
import type { Redis } from "../store/redis.ts";
import { checkChain } from "./check-chain.ts";
import { checkSocialNetwork } from "./check-social-network.ts";
import { bad, type Finding } from "./finding.ts";

/** The configuration can never work, so the process must not start. */
export class PreflightError extends Error {
  override readonly name = "PreflightError";
}

/**
 * Checks the upstreams without spending anything, and logs the findings. Most problems are only
 * logged, because they may go away while the process runs. Throws PreflightError if a required
 * program is missing on a public cluster, or if Redis cannot be used as configured.
 */
export async function checkUpstreams(needs: {
  config: Config;
  rpc: Rpc;
  client: SocialClient;
  redis: Redis | undefined;
  /** Receives the fee payer's balance, and warns when it is low. */
  setFeePayerBalance: (lamports: Lamports) => void;
  log: Logger;
}): Promise<void> {
  const { config, client, redis, log } = needs;

  function report({ state, variable, text, isFatal, isReported }: Finding): void {
    const message = `${variable}: ${text}`;
    if (isFatal) throw new PreflightError(message);
    if (!isReported) log[state === "good" ? "info" : "warn"](message);
  }

  await Promise.all([
    checkChain({
      ...needs,
      report,
      checkedSlots: redis?.ready.then(() => readPlatformChecks(redis)),
    }),
    checkSocialNetwork(client, config.socialApiUrl).then(report),
    redis?.ready.then((problem) => {
      if (problem !== undefined) report(bad("REDIS_URL", problem, { isFatal: true }));
    }),
  ]);
}
