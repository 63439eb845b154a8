import type { Registry } from "@prometheus-io/client";
import { createReadWallets } from "./chain/wallets.ts";
import { createAddresses } from "./chain/addresses.ts";
import { createCoinFindings } from "./chain/coin-findings.ts";
import { createDeployWatch, type DeployWaits } from "./chain/deploys.ts";
import { createBalances } from "./chain/balances.ts";
import { createClaims } from "./chain/collect/claims.ts";
import { createCollectMetrics, type MetricsWaits } from "./chain/collect/collect-metrics.ts";
import { createCollector } from "./chain/collect/collector.ts";
import { createCoinBackoff } from "./chain/collect/coin-backoff.ts";
import { createFeeBudget } from "./chain/collect/fee-budget.ts";
import { createFeePayer } from "./chain/collect/fee-payer.ts";
import type { ConfirmationWaits } from "./chain/collect/send-and-confirm.ts";
import { createComposer } from "./chain/collect/message/composer.ts";
import { createVersionChoice } from "./chain/collect/message/message-version.ts";
import { createDrafts } from "./chain/collect/prepare/draft.ts";
import { createPacker } from "./chain/collect/prepare/packer.ts";
import { createProspects } from "./chain/collect/prepare/prospect.ts";
import { createSimulator } from "./chain/collect/prepare/simulator.ts";
import { POLL_MS } from "./chain/collect/signature-poller.ts";
import { createFloors } from "./chain/slots/floors.ts";
import { createHistory } from "./chain/history/history.ts";
import { toLamports } from "./chain/lamports.ts";
import { createLandedSlots } from "./chain/slots/landed-slots.ts";
import { createCoinAddresses } from "./chain/launchpad/coin-addresses.ts";
import { createDecodeCoin } from "./chain/launchpad/coin-fees.ts";
import { createLaunchpad } from "./chain/launchpad/instructions.ts";
import { createLiveBalances, type LiveWaits } from "./chain/live/live-balances.ts";
import { createRpc, type Rpc } from "./chain/rpc/rpc-client.ts";
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
import type { BudgetMetrics } from "./fairness/budget-metrics.ts";
import type { createCallUpstream } from "./upstream/http.ts";
import type { Redis } from "./store/redis.ts";

/** Tests pass shorter waits than production's, which are the parts' defaults. */
export type Waits = ConfirmationWaits & DeployWaits & LiveWaits & MetricsWaits & ReportWaits;

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
  const { config, redis, callUpstream, batchMetrics, budgetMetrics, warnings, log } = needs;
  const { socialApiUrl, socialTimeoutMs } = config;
  const quota = createCallQuota({ socialApiUrl, socialTimeoutMs, redis });
  budgetMetrics.watch("social_calls", quota.usedPart);
  const client = createSocialClient({
    socialApiUrl,
    token: config.secrets.socialApiToken,
    circuitBreaker: createCircuitBreaker({ socialTimeoutMs, log }),
    quota,
    callUpstream,
    warnings,
  });
  return {
    client,
    accountLookup: createAccountLookup({
      ...config,
      client,
      budget: createReadBudget({ ...config, redis, metrics: budgetMetrics, log }),
      redis,
      metrics: { batches: batchMetrics("social"), budgets: budgetMetrics },
    }),
  };
}

/** The parts that read and write the chain. */
export function createChainServices(needs: CommonNeeds) {
  const { config, registry, redis, callUpstream, batchMetrics, budgetMetrics, warnings, log } = needs;
  const { escrowProgramId, escrowSeed } = config;
  const { launchpadProgramId, launchpadAmmProgramId, launchpadFeesProgramId } = config;
  const { rpcTimeoutMs, historyCallsPerHour, maxRentLamports: maxRent } = config;
  const { collectTimeoutMs, minCollectLamports: minLamports } = config;
  const { maxPriorityFeeLamports: maxPriorityFee, feeBudgetLamportsPerHour: budgetLamportsPerHour } = config;
  const { priorityFeeFloorMicrolamports: priceFloor, priorityFeePercentile: pricePercentile } = config;
  const { solanaRpcUrl: rpcUrls, feePayerKeypair: keypair } = config.secrets;
  const { pollMs, resendMs, rereadMs, agreeMs, reportMs, finalizedMaxAgeMs } = needs.waits ?? {};
  const { livePeriodMs, liveCallMs, balanceMaxAgeMs, deployPeriodMs } = needs.waits ?? {};
  const feePayerAddress = keypair.publicKey.toBase58();

  const rpc = createRpc({
    urls: rpcUrls,
    timeoutMs: rpcTimeoutMs,
    callUpstream,
    log,
    reportMs,
    finalizedMaxAgeMs,
  });
  const launchpad = createLaunchpad({ launchpadProgramId, launchpadAmmProgramId });
  const coinAddressesOf = createCoinAddresses({
    launchpadProgramId,
    launchpadAmmProgramId,
    launchpadFeesProgramId,
  });
  const decodeCoin = createDecodeCoin({ launchpadProgramId, launchpadAmmProgramId, launchpadFeesProgramId });
  const floors = createFloors(rpc);
  const findings = createCoinFindings();
  const batches = batchMetrics("chain");
  const createBalancesOf = (rpc: Rpc, metrics = batches) =>
    createBalances({
      readWallets: createReadWallets({ rpc, floors, decodeCoin, metrics }),
      findings,
      escrowProgramId,
      feePayer: feePayerAddress,
      minLamports,
      maxRent,
    });
  const balances = createBalancesOf(rpc);
  /** Their reads do not merge with those of lookups. They are made one at a time, so none waits. */
  const countedBalances = (onCall: () => void) =>
    createBalancesOf(
      { ...rpc, readAccounts: (read) => rpc.readAccounts({ ...read, onCall }) },
      { ...batches, watch: () => undefined },
    );
  const landedSlots = createLandedSlots({ feePayer: feePayerAddress, redis, floors });

  const budget = createFeeBudget({
    feePayer: feePayerAddress,
    budgetLamportsPerHour,
    maxPriorityFee,
    maxRent,
    redis,
    metrics: budgetMetrics,
    log,
  });
  const feePayer = createFeePayer({
    keypair,
    launchpadProgramId,
    launchpadAmmProgramId,
    launchpad,
    coinAddressesOf,
    maxPriorityFee,
    budgetLamportsPerHour,
    budget,
  });
  const metrics = createCollectMetrics({
    registry,
    warnings,
    feePayer: feePayerAddress,
    maxPriorityFee,
    readBalance: async () => {
      const [group] = await rpc.getAccounts([[feePayerAddress]]);
      return group?.[0]?.lamports ?? toLamports(0);
    },
    balanceMaxAgeMs,
  });

  const versions = createVersionChoice({ log });
  const composer = createComposer({ launchpad, feePayer: keypair.publicKey, version: versions.current });
  const prospects = createProspects({ balances, composer, minLamports, maxRent });
  const simulator = createSimulator({
    rpc,
    floors,
    composer,
    feePayer: keypair.publicKey,
    priceFloor,
    pricePercentile,
    maxPriorityFee,
  });
  const packer = createPacker({
    rpc,
    createDraft: createDrafts({ prospects, minLamports, findings, maxRent, log }),
    simulator,
    composer,
    versions,
    feePayer,
    priceFloor,
    pollMs: pollMs ?? POLL_MS,
    log,
  });
  const collector = createCollector({
    rpc,
    balances,
    prospects,
    packer,
    versions,
    feePayer,
    claims: createClaims({ feePayer: feePayerAddress, redis }),
    backoff: createCoinBackoff(),
    findings,
    floors,
    announceLanded: landedSlots.announce,
    metrics,
    timeoutMs: collectTimeoutMs,
    log,
    pollMs,
    resendMs,
    rereadMs,
    agreeMs,
  });

  return {
    rpc,
    balances,
    collector,
    metrics,
    history: createHistory({
      rpc,
      floors,
      launchpadProgramId,
      historyCallsPerHour,
      redis,
      metrics: budgetMetrics,
      log,
      rereadMs,
    }),
    deploys: createDeployWatch({
      rpc,
      programs: {
        LAUNCHPAD: launchpadProgramId,
        AMM: launchpadAmmProgramId,
        FEES: launchpadFeesProgramId,
      },
      registry,
      log,
      deployPeriodMs,
    }),
    live: createLiveBalances({ balances, countedBalances, livePeriodMs, liveCallMs }),
    addressesOf: createAddresses({ escrowProgramId, escrowSeed, launchpadProgramId, launchpadAmmProgramId }),
    coinAddressesOf,
  };
}
