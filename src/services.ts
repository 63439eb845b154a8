import type { Registry } from "@prometheus-io/client";
import { createReadWallets } from "./chain/wallets.ts";
import { createAddresses } from "./chain/addresses.ts";
import { createBalances } from "./chain/balances.ts";
import { createAccountLocks } from "./chain/collect/account-lock.ts";
import { createCollectMetrics } from "./chain/collect/collect-metrics.ts";
import { createCollector } from "./chain/collect/collector.ts";
import { createFeeBudget } from "./chain/collect/fee-budget.ts";
import { createFeePayer } from "./chain/collect/fee-payer.ts";
import { createSimulator } from "./chain/collect/simulation.ts";
import { createHistory } from "./chain/history/history.ts";
import { toLamports } from "./chain/lamports.ts";
import { createLandedSlots } from "./chain/landed-slots.ts";
import { createLaunchpad } from "./chain/launchpad/instructions.ts";
import { createLiveBalances } from "./chain/live/live-balances.ts";
import { createRpc } from "./chain/rpc/rpc-client.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./observability/log.ts";
import type { Warnings } from "./observability/warnings.ts";
import { createAccountLookup } from "./social/account-lookup.ts";
import { createSocialClient } from "./social/api-client.ts";
import { createCallQuota } from "./social/call-quota.ts";
import { createCircuitBreaker } from "./social/circuit-breaker.ts";
import { createReadBudget } from "./social/read-budget.ts";
import type { createBatchMetrics } from "./upstream/batch-metrics.ts";
import { createBudgetMetrics } from "./upstream/budget/budget-metrics.ts";
import type { createCallUpstream } from "./upstream/http.ts";
import type { Redis } from "./upstream/redis.ts";

/** What several parts of the gateway use. */
export interface Shared {
  readonly config: Config;
  readonly registry: Registry;
  readonly redis: Redis | undefined;
  readonly callUpstream: ReturnType<typeof createCallUpstream>;
  readonly batchMetrics: ReturnType<typeof createBatchMetrics>;
  readonly warnings: Warnings;
  readonly log: Logger;
}

/** The parts that read the social network. */
export function createSocial({ config, registry, redis, callUpstream, batchMetrics, warnings, log }: Shared) {
  const { social, secrets } = config;
  const budgets = createBudgetMetrics(registry, log);
  const quota = createCallQuota({ ...social, redis });
  budgets.watch("social_calls", quota.usedPart);
  const client = createSocialClient({
    ...social,
    token: secrets.socialApiToken,
    circuitBreaker: createCircuitBreaker({ timeoutMs: social.timeoutMs, log }),
    quota,
    callUpstream,
    warnings,
  });
  return {
    client,
    accountLookup: createAccountLookup({
      ...social,
      client,
      budget: createReadBudget({ ...social, redis, metrics: budgets, log }),
      redis,
      metrics: { batches: batchMetrics("social"), budgets },
    }),
  };
}

/** The parts that read and write the chain. */
export function createChain({ config, registry, redis, callUpstream, batchMetrics, warnings, log }: Shared) {
  const { chain, collect, secrets } = config;
  const rpc = createRpc({ urls: secrets.rpcUrls, timeoutMs: chain.rpcTimeoutMs, callUpstream, log });
  const balances = createBalances({
    ...chain,
    rpc,
    readWallets: createReadWallets(rpc, batchMetrics("chain")),
  });
  const payer = secrets.feePayer.publicKey;
  const landedSlots = createLandedSlots({
    feePayer: payer.toBase58(),
    redis,
    requireSlot: rpc.requireSlot,
  });
  const feePayer = createFeePayer({
    ...collect,
    keypair: secrets.feePayer,
    programIds: [chain.launchpadProgramId, chain.launchpadAmmProgramId],
    budget: createFeeBudget({ ...collect, feePayer: payer.toBase58(), redis }),
  });
  const metrics = createCollectMetrics({
    ...collect,
    registry,
    warnings,
    feePayer: payer.toBase58(),
    readBalance: async () => {
      const [group] = await rpc.getAccounts([[payer.toBase58()]]);
      return group?.[0]?.lamports ?? toLamports(0);
    },
  });
  const launchpad = createLaunchpad(chain);
  const collector = createCollector({
    ...collect,
    rpc,
    balances,
    simulator: createSimulator({ ...collect, rpc, balances, launchpad, payer, log }),
    feePayer,
    locks: createAccountLocks({ feePayer: payer.toBase58(), redis }),
    announceLanded: landedSlots.announce,
    metrics,
    log,
  });
  const history = createHistory({ ...chain, rpc });
  return {
    rpc,
    balances,
    history,
    live: createLiveBalances({ balances }),
    collector,
    metrics,
    addressesOf: createAddresses(chain),
  };
}
