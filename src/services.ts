import type { Registry } from "@prometheus-io/client";
import { createReadWallets } from "./chain/wallets.ts";
import { createAddresses } from "./chain/addresses.ts";
import { createBalances } from "./chain/balances.ts";
import { createAccountLocks } from "./chain/collect/account-lock.ts";
import { createCollectMetrics, type MetricsWaits } from "./chain/collect/collect-metrics.ts";
import { createCollector } from "./chain/collect/collector.ts";
import { createFeeBudget } from "./chain/collect/fee-budget.ts";
import { createFeePayer } from "./chain/collect/fee-payer.ts";
import type { ConfirmationWaits } from "./chain/collect/send-and-confirm.ts";
import { createComposer } from "./chain/collect/message/composer.ts";
import { createProspects } from "./chain/collect/prepare/prospect.ts";
import { createSimulator } from "./chain/collect/prepare/simulator.ts";
import { createHistory } from "./chain/history/history.ts";
import { toLamports } from "./chain/lamports.ts";
import { createLandedSlots } from "./chain/landed-slots.ts";
import { createCoinAddresses } from "./chain/launchpad/coin-addresses.ts";
import { createReadCoinFees } from "./chain/launchpad/coin-fees.ts";
import { createLaunchpad } from "./chain/launchpad/instructions.ts";
import { createLiveBalances, type LiveWaits } from "./chain/live/live-balances.ts";
import { createRpc } from "./chain/rpc/rpc-client.ts";
import type { ReportWaits } from "./chain/rpc/signature-status.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./observability/log.ts";
import type { Warnings } from "./observability/warnings.ts";
import { createAccountLookup } from "./social/account-lookup.ts";
import { createSocialClient } from "./social/api-client.ts";
import { createCallQuota } from "./social/call-quota.ts";
import { createCircuitBreaker } from "./social/circuit-breaker.ts";
import { createReadBudget } from "./social/read-budget.ts";
import type { createBatchMetrics } from "./upstream/batch-metrics.ts";
import type { BudgetMetrics } from "./upstream/budget/budget-metrics.ts";
import type { createCallUpstream } from "./upstream/http.ts";
import type { Redis } from "./upstream/redis.ts";

/** Tests pass shorter waits than production's, which are the parts' defaults. */
export type Waits = ConfirmationWaits & LiveWaits & MetricsWaits & ReportWaits;

/** What several parts of the gateway use. */
export interface CommonNeeds {
  readonly config: Config;
  readonly registry: Registry;
  readonly redis: Redis | undefined;
  readonly callUpstream: ReturnType<typeof createCallUpstream>;
  readonly batchMetrics: ReturnType<typeof createBatchMetrics>;
  readonly budgetMetrics: BudgetMetrics;
  readonly warnings: Warnings;
  readonly log: Logger;
  readonly waits?: Waits | undefined;
}

/** The parts that read the social network. */
export function createSocialServices(needs: CommonNeeds) {
  const { config, redis, callUpstream, batchMetrics, budgetMetrics: budgets, warnings, log } = needs;
  const { social, secrets } = config;
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
export function createChainServices(needs: CommonNeeds) {
  const { config, registry, redis, callUpstream, batchMetrics, budgetMetrics, warnings, log, waits } = needs;
  const { chain, collect, secrets } = config;
  const rpc = createRpc({
    ...waits,
    urls: secrets.rpcUrls,
    timeoutMs: chain.rpcTimeoutMs,
    callUpstream,
    log,
  });
  const balances = createBalances({
    ...chain,
    rpc,
    readWallets: createReadWallets(rpc, batchMetrics("chain")),
    readCoinFees: createReadCoinFees(chain),
  });
  const payer = secrets.feePayer.publicKey;
  const launchpad = createLaunchpad(chain);
  const coinAddressesOf = createCoinAddresses(chain);
  const landedSlots = createLandedSlots({
    feePayer: payer.toBase58(),
    redis,
    requireSlot: rpc.requireSlot,
  });
  const feePayer = createFeePayer({
    ...collect,
    keypair: secrets.feePayer,
    ...chain,
    launchpad,
    coinAddressesOf,
    budget: createFeeBudget({
      ...chain,
      ...collect,
      feePayer: payer.toBase58(),
      redis,
      metrics: budgetMetrics,
      log,
    }),
  });
  const metrics = createCollectMetrics({
    ...{ ...collect, ...waits },
    registry,
    warnings,
    feePayer: payer.toBase58(),
    readBalance: async () => {
      const [group] = await rpc.getAccounts([[payer.toBase58()]]);
      return group?.[0]?.lamports ?? toLamports(0);
    },
  });
  const composer = createComposer({ launchpad, feePayer: payer });
  const prospects = createProspects({ ...chain, ...collect, balances, composer });
  const collector = createCollector({
    ...{ ...collect, ...waits },
    rpc,
    balances,
    prospects,
    simulator: createSimulator({ ...chain, ...collect, rpc, composer, prospects, feePayer: payer, log }),
    composer,
    feePayer,
    locks: createAccountLocks({ feePayer: payer.toBase58(), redis }),
    announceLanded: landedSlots.announce,
    metrics,
    log,
  });
  const history = createHistory({ ...chain, ...waits, rpc, redis, metrics: budgetMetrics, log });
  return {
    ...{ rpc, balances, history, collector, metrics },
    live: createLiveBalances({ ...waits, balances }),
    addressesOf: createAddresses(chain),
    coinAddressesOf,
  };
}
