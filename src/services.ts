import { Gauge, type Registry } from "@prometheus-io/client";
import { createReadWallets } from "./chain/balances/wallets.ts";
import { createAddresses } from "./chain/launchpad/account-addresses.ts";
import { createFailures } from "./chain/balances/failures.ts";
import { MAX_RENT_LAMPORTS } from "./chain/launchpad/choose-sweeps.ts";
import { createBalances } from "./chain/balances/balances.ts";
import { createClaims } from "./chain/collect/claims.ts";
import { createCollectMetrics, type MetricsWaits } from "./chain/collect/collect-metrics.ts";
import { createCollector } from "./chain/collect/collector.ts";
import { createFeeBudget } from "./chain/collect/fee-budget.ts";
import { createFeePayer } from "./chain/collect/fee-payer.ts";
import { createComposer } from "./chain/units/composer.ts";
import { createFlights } from "./chain/collect/flights.ts";
import { createConfirmation, type ConfirmationWaits } from "./chain/collect/send-and-confirm.ts";
import { createSettleTransaction } from "./chain/collect/settle.ts";
import { createPrepare } from "./chain/collect/prepare-and-sign.ts";
import { createSimulations } from "./chain/units/simulations.ts";
import { createReadUnits } from "./chain/units/units.ts";
import { createFloors } from "./chain/balances/floors.ts";
import { createReplicaCount } from "./store/replica-count.ts";
import { createHistory } from "./chain/history/history.ts";
import { toLamports, type Lamports } from "./chain/primitives/lamports.ts";
import { createLiveBalances, type LiveWaits } from "./chain/live/live-balances.ts";
import type { FailoverWaits } from "./chain/rpc/failover.ts";
import { createRpc } from "./chain/rpc/rpc-client.ts";
import { NoRoomError } from "./chain/errors/no-room-error.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./observability/log.ts";
import type { Warnings } from "./observability/warnings.ts";
import { createAccountLookup } from "./social/account-lookup.ts";
import { createSocialClient } from "./social/api-client.ts";
import { createCallQuota } from "./social/call-quota.ts";
import { createCircuitBreaker } from "./social/circuit-breaker.ts";
import { createReadBudget } from "./social/read-budget.ts";
import type { BudgetMetrics } from "./fairness/budget-metrics.ts";
import { createChainCallPlan } from "./fairness/chain-call-plan.ts";
import type { CallUpstream } from "./upstream/http.ts";
import type { Redis } from "./store/redis.ts";

/** What only tests change. The defaults are production's. */
export type Overrides = ConfirmationWaits &
  FailoverWaits &
  LiveWaits &
  MetricsWaits & {
    readonly redisAnswerTimeoutMs?: number;
    readonly socialConcurrency?: number;
    readonly maxRentLamports?: Lamports;
    readonly rateLimitWindowSeconds?: number;
    readonly streamSeconds?: number;
  };

interface ServiceNeeds {
  readonly config: Config;
  readonly registry: Registry;
  readonly redis: Redis | undefined;
  readonly callUpstream: CallUpstream;
  readonly budgetMetrics: BudgetMetrics;
  readonly warnings: Warnings;
  readonly log: Logger;
  readonly overrides: Overrides;
}

export function createSocialServices(needs: ServiceNeeds) {
  const { config, registry, redis, callUpstream, budgetMetrics, warnings, log, overrides } = needs;
  const { socialApiUrl, socialTimeoutMs } = config;
  const quota = createCallQuota({ socialApiUrl, socialTimeoutMs, redis });
  budgetMetrics.watch("social_calls", quota.leftRatio);
  const circuitBreaker = createCircuitBreaker({ log, warnings });
  const client = createSocialClient({
    socialApiUrl,
    socialTimeoutMs,
    token: config.secrets.socialApiToken,
    circuitBreaker,
    quota,
    callUpstream,
  });
  const budget = createReadBudget({
    socialReadsPerHour: config.socialReadsPerHour,
    socialApiUrl,
    redis,
    metrics: budgetMetrics,
  });
  const accountLookup = createAccountLookup({
    client,
    budget,
    ...overrides,
    socialQueueMax: config.socialQueueMax,
    socialTimeoutMs,
    socialCacheSeconds: config.socialCacheSeconds,
    socialApiUrl,
    redis,
    metrics: budgetMetrics,
  });
  new Gauge({
    name: "tributary_queue_length",
    help: "Accounts waiting for a call to the social network. Those beyond SOCIAL_QUEUE_MAX are refused.",
    labelNames: ["upstream"],
    registers: [registry],
    collect() {
      this.set({ upstream: "social" }, accountLookup.waiting());
    },
  });
  return {
    client,
    accountLookup,
    /** For the operator. */
    describe: () => ({
      host: socialApiUrl.host,
      ...circuitBreaker.describe(),
      quota: quota.describe(),
      waiting: accountLookup.waiting(),
    }),
  };
}

export function createChainServices(needs: ServiceNeeds) {
  const { config, registry, redis, callUpstream, budgetMetrics, warnings, log, overrides } = needs;
  const { minCollectLamports, maxPriorityFeeLamports } = config;
  const { maxRentLamports = MAX_RENT_LAMPORTS } = overrides;
  const { feeBudgetLamportsPerHour, collectTimeoutMs, escrowProgramId, escrowSeed } = config;
  const { feePayerKeypair, solanaRpcUrl } = config.secrets;
  const feePayer = feePayerKeypair.publicKey.toBase58();

  const replicas = createReplicaCount(redis);
  const chainCallPlan = createChainCallPlan({
    callsPerSecond: config.rpcCallsPerSecond,
    replicas: replicas.count,
    refuse: (shortage) => new NoRoomError(shortage),
    metrics: budgetMetrics,
  });
  const { own: ownCalls } = chainCallPlan;
  const rpc = createRpc({
    urls: solanaRpcUrl,
    rpcTimeoutMs: config.rpcTimeoutMs,
    callUpstream,
    chainCallPlan,
    log,
    ...overrides,
  });
  const floors = createFloors({ feePayer, redis });
  const failures = createFailures({ feePayer, redis });
  const readWallets = createReadWallets({ rpc, floors, chainCallPlan });
  const balances = createBalances({
    readWallets,
    failures,
    escrowProgramId,
    feePayer,
    minCollectLamports,
    maxRentLamports,
  });

  const budget = createFeeBudget({
    feePayer,
    feeBudgetLamportsPerHour,
    maxPriorityFeeLamports,
    maxRentLamports,
    redis,
    metrics: budgetMetrics,
  });
  const signer = createFeePayer({
    keypair: feePayerKeypair,
    maxPriorityFeeLamports,
    feeBudgetLamportsPerHour,
    budget,
  });
  const metrics = createCollectMetrics({
    registry,
    warnings,
    feePayer,
    maxPriorityFeeLamports,
    readBalance: async () => {
      const [account] = await rpc.getAccounts([feePayer]);
      return account?.lamports ?? toLamports(0);
    },
    ...overrides,
  });

  const composer = createComposer({ feePayer, minCollectLamports, maxRentLamports });
  const claims = createClaims({ feePayer, redis });
  const simulations = createSimulations({
    rpc,
    composer,
    failures,
    feePayer,
    minCollectLamports,
    maxRentLamports,
  });
  const readUnits = createReadUnits({ rpc, balances, composer, failures });
  const prepare = createPrepare({
    rpc,
    composer,
    simulations,
    feePayer: signer,
    failures,
    minCollectLamports,
    maxPriorityFeeLamports,
    ownCalls,
    pollMs: overrides.pollMs,
    log,
  });
  const confirmation = createConfirmation({ rpc, ...overrides });
  const settleTransaction = createSettleTransaction({
    balances,
    claims,
    failures,
    floors,
    readLanded: confirmation.readLanded,
    composer,
    feePayer,
    minCollectLamports,
    metrics,
    collectTimeoutMs,
    log,
  });
  const flights = createFlights({
    readUnits,
    prepare,
    claims,
    floors,
    confirm: confirmation.confirm,
    settleTransaction,
    metrics,
    ownCalls,
    collectTimeoutMs,
  });
  const collector = createCollector({
    rpc,
    flights,
    readUnits,
    claims,
    metrics,
    ownCalls,
    collectTimeoutMs,
    log,
  });

  return {
    rpc,
    balances,
    floors,
    failures,
    flights,
    chainCallPlan,
    collector,
    metrics,
    history: createHistory({ rpc, floors, ownCalls }),
    live: createLiveBalances({
      balances,
      batches: chainCallPlan.batchesOf("streams"),
      ...overrides,
    }),
    replicas,
    addressesOf: createAddresses({ escrowProgramId, escrowSeed }),
  };
}
