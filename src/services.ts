import { Gauge, type Registry } from "@prometheus-io/client";
import { createReadWallets } from "./chain/balances/wallets.ts";
import { createAddresses } from "./chain/launchpad/account-addresses.ts";
import { createCoinFindings } from "./chain/balances/coin-findings.ts";
import { createDeployWatch, type DeployWaits } from "./chain/launchpad/deploys.ts";
import { createBalances } from "./chain/balances/balances.ts";
import { createClaims } from "./chain/collect/claims.ts";
import { createCollectMetrics, type MetricsWaits } from "./chain/collect/collect-metrics.ts";
import { createCollector } from "./chain/collect/collector.ts";
import { createFeeBudget } from "./chain/collect/fee-budget.ts";
import { createFeePayer } from "./chain/collect/fee-payer.ts";
import type { ConfirmationWaits } from "./chain/collect/send-and-confirm.ts";
import { createComposer } from "./chain/units/composer.ts";
import { createFlights } from "./chain/collect/flights.ts";
import { createTransactions } from "./chain/collect/transactions.ts";
import { createFailedSimulations } from "./chain/units/failed-simulations.ts";
import { createSimulations } from "./chain/units/simulations.ts";
import { createReadUnits } from "./chain/units/units.ts";
import { createFailingBlocks } from "./chain/units/failing-blocks.ts";
import { createFloors } from "./chain/slots/floors.ts";
import { createReplicaCount } from "./store/replica-count.ts";
import { createHistory } from "./chain/history/history.ts";
import { toLamports } from "./chain/primitives/lamports.ts";
import { createLandedSlots } from "./chain/slots/landed-slots.ts";
import { createLiveBalances, type LiveWaits } from "./chain/live/live-balances.ts";
import { createRpc } from "./chain/rpc/rpc-client.ts";
import { NoRoomError } from "./chain/rpc/rpc-error.ts";
import type { ReportWaits } from "./chain/rpc/signature-status.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./observability/log.ts";
import type { Warnings } from "./observability/warnings.ts";
import { createAccountLookup } from "./social/account-lookup.ts";
import { createSocialClient } from "./social/api-client.ts";
import { createCallQuota } from "./social/call-quota.ts";
import { createCircuitBreaker } from "./social/circuit-breaker.ts";
import { createReadBudget } from "./social/read-budget.ts";
import type { BudgetMetrics } from "./fairness/budget-metrics.ts";
import { createChainPlan } from "./fairness/chain-plan.ts";
import type { createCallUpstream } from "./upstream/http.ts";
import type { Redis } from "./store/redis.ts";

/** Tests pass shorter waits. The defaults are production's. */
export type Waits = ConfirmationWaits & DeployWaits & LiveWaits & MetricsWaits & ReportWaits;

export interface CommonNeeds {
  readonly config: Config;
  readonly registry: Registry;
  readonly redis: Redis | undefined;
  readonly callUpstream: ReturnType<typeof createCallUpstream>;
  readonly budgetMetrics: BudgetMetrics;
  readonly warnings: Warnings;
  readonly log: Logger;
  readonly waits?: Waits | undefined;
}

export function createSocialServices(needs: CommonNeeds) {
  const { secrets, ...config } = needs.config;
  const { registry, redis, budgetMetrics } = needs;
  const quota = createCallQuota({ ...config, redis });
  budgetMetrics.watch("social_calls", quota.usedRatio);
  const client = createSocialClient({
    ...needs,
    ...config,
    token: secrets.socialApiToken,
    circuitBreaker: createCircuitBreaker(needs),
    quota,
  });
  const accountLookup = createAccountLookup({
    ...config,
    client,
    budget: createReadBudget({ ...config, redis, metrics: budgetMetrics }),
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
  return { client, accountLookup };
}

export function createChainServices(needs: CommonNeeds) {
  const { secrets, ...config } = needs.config;
  const { registry, redis, callUpstream, budgetMetrics, warnings, log } = needs;
  const keypair = secrets.feePayerKeypair;
  const feePayerAddress = keypair.publicKey.toBase58();
  const common = {
    ...config,
    ...needs.waits,
    feePayer: feePayerAddress,
    registry,
    redis,
    warnings,
    log,
  };

  const replicas = createReplicaCount(redis);
  const chainPlan = createChainPlan({
    callsPerSecond: config.rpcCallsPerSecond,
    replicas: replicas.count,
    refuse: (shortage) => new NoRoomError(shortage),
    metrics: budgetMetrics,
  });
  const { own: ownCalls } = chainPlan;
  const rpc = createRpc({ ...common, urls: secrets.solanaRpcUrl, callUpstream, chainPlan });
  const floors = createFloors(rpc);
  const findings = createCoinFindings(common);
  const readWallets = createReadWallets({ rpc, floors, chainPlan });
  const balances = createBalances({ ...common, readWallets, findings });
  const landedSlots = createLandedSlots({ ...common, floors });

  const budget = createFeeBudget({ ...common, metrics: budgetMetrics });
  const feePayer = createFeePayer({ ...common, keypair, budget });
  const metrics = createCollectMetrics({
    ...common,
    readBalance: async () => {
      const [group] = await rpc.getAccounts([[feePayerAddress]]);
      return group?.[0]?.lamports ?? toLamports(0);
    },
  });

  const composer = createComposer(common);
  const all = {
    ...common,
    ...{ rpc, balances, floors, feePayer, findings, metrics, composer },
    simulations: createSimulations({ ...common, rpc, floors, composer, findings }),
    claims: createClaims(common),
    failedSimulations: createFailedSimulations(),
    failingBlocks: createFailingBlocks(),
    announceLanded: landedSlots.announce,
    ownCalls,
  };
  const readUnits = createReadUnits(all);
  const transactions = createTransactions(all);
  const flights = createFlights({ ...all, feePayer: feePayerAddress, readUnits, transactions });
  const collector = createCollector({ ...all, readUnits, flights });

  return {
    rpc,
    balances,
    collector,
    metrics,
    history: createHistory({ rpc, floors, ownCalls }),
    deploys: createDeployWatch({ ...common, rpc }),
    live: createLiveBalances({ ...common, balances, batches: chainPlan.batchesOf("streams") }),
    replicas,
    addressesOf: createAddresses(config),
  };
}
