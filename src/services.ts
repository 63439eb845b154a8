import { Gauge, Registry } from "@prometheus-io/client";
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
import { createWarnings } from "./observability/warnings.ts";
import { createAccountLookup } from "./social/account-lookup.ts";
import { createSocialClient } from "./social/api-client.ts";
import { createCallQuota } from "./social/call-quota.ts";
import { createCircuitBreaker } from "./social/circuit-breaker.ts";
import { createReadBudget } from "./social/read-budget.ts";
import { createBudgetMetrics } from "./fairness/budget-metrics.ts";
import { createChainCallPlan } from "./fairness/chain-call-plan.ts";
import { createCallUpstream } from "./upstream/http.ts";
import { createRedis } from "./store/redis.ts";

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

type ServiceNeeds = ReturnType<typeof createShared>;

/** Creates the services of a configuration, and what they share. */
export function createServices(config: Config, log: Logger, overrides: Overrides = {}) {
  const shared = createShared(config, log, overrides);
  return { ...shared, social: createSocialServices(shared), chain: createChainServices(shared) };
}

function createShared(config: Config, log: Logger, overrides: Overrides) {
  const registry = new Registry();
  const base = {
    config,
    log,
    overrides,
    registry,
    warnings: createWarnings(log),
    callUpstream: createCallUpstream(registry),
    budgetMetrics: createBudgetMetrics(registry),
  };
  const { redisUrl: urls } = config.secrets;
  const answerTimeoutMs = overrides.redisAnswerTimeoutMs;
  const redis = urls && createRedis({ ...base, urls, answerTimeoutMs });
  return { ...base, redis, replicas: createReplicaCount(redis) };
}

function createSocialServices(needs: ServiceNeeds) {
  const { config, overrides, ...base } = needs;
  const { secrets, ...settings } = config;
  const { registry, budgetMetrics } = base;
  const shared = { ...base, ...settings, ...overrides, metrics: budgetMetrics };
  const quota = createCallQuota(shared);
  budgetMetrics.watch("social_calls", quota.leftRatio);
  const circuitBreaker = createCircuitBreaker(shared);
  const token = secrets.socialApiToken;
  const client = createSocialClient({ ...shared, token, circuitBreaker, quota });
  const budget = createReadBudget(shared);
  const accountLookup = createAccountLookup({ ...shared, client, budget });
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
      host: settings.socialApiUrl.host,
      ...circuitBreaker.describe(),
      quota: quota.describe(),
      waiting: accountLookup.waiting(),
    }),
  };
}

export function createChainServices(needs: ServiceNeeds) {
  const { config, overrides, ...base } = needs;
  const { secrets, ...settings } = config;
  const { replicas, budgetMetrics } = base;
  const feePayer = secrets.feePayerKeypair.publicKey.toBase58();
  const chainCallPlan = createChainCallPlan({
    callsPerSecond: settings.rpcCallsPerSecond,
    replicas: replicas.count,
    refuse: (shortage) => new NoRoomError(shortage),
    metrics: budgetMetrics,
  });
  const shared = {
    ...base,
    ...settings,
    maxRentLamports: MAX_RENT_LAMPORTS,
    ...overrides,
    feePayer,
    chainCallPlan,
    ownCalls: chainCallPlan.own,
  };
  const rpc = createRpc({ ...shared, urls: secrets.solanaRpcUrl });
  const floors = createFloors(shared);
  const failures = createFailures(shared);
  const readWallets = createReadWallets({ ...shared, rpc, floors });
  const balances = createBalances({ ...shared, readWallets, failures });
  const composer = createComposer(shared);
  const claims = createClaims(shared);
  const metrics = createCollectMetrics({
    ...shared,
    readBalance: async () => {
      const [account] = await rpc.getAccounts([feePayer]);
      return account?.lamports ?? toLamports(0);
    },
  });
  const reading = { ...shared, rpc, balances, floors, failures, composer, claims, metrics };
  const readUnits = createReadUnits(reading);
  const confirmation = createConfirmation(reading);
  const simulations = createSimulations(reading);
  const prepare = createPrepare({
    ...reading,
    simulations,
    feePayer: createFeePayer({
      ...shared,
      keypair: secrets.feePayerKeypair,
      budget: createFeeBudget({ ...shared, metrics: budgetMetrics }),
    }),
  });
  const settleTransaction = createSettleTransaction({ ...reading, ...confirmation });
  const collecting = { ...reading, ...confirmation, readUnits, prepare, settleTransaction };
  const flights = createFlights(collecting);

  return {
    rpc,
    readWallets,
    balances,
    readUnits,
    composer,
    simulations,
    floors,
    failures,
    flights,
    chainCallPlan,
    metrics,
    collector: createCollector({ ...collecting, flights }),
    history: createHistory(reading),
    live: createLiveBalances({ ...reading, batches: chainCallPlan.batchesOf("streams") }),
    addressesOf: createAddresses(settings),
  };
}
