import { Keypair } from "@solana/web3.js";
import { readConfig, type Config } from "../../src/config.ts";
import { createRateLimit } from "../../src/http/rate-limit/rate-limit.ts";
import { createLogger } from "../../src/observability/log.ts";
import { createWarnings } from "../../src/observability/warnings.ts";
import { createAccountLookup } from "../../src/social/account-lookup.ts";
import { createSocialClient } from "../../src/social/api-client.ts";
import { createCallQuota } from "../../src/social/call-quota.ts";
import { createCircuitBreaker } from "../../src/social/circuit-breaker.ts";
import { createReadBudget } from "../../src/social/read-budget.ts";
import { SocialError } from "../../src/social/social-error.ts";
import { createMeteredNetwork } from "./doubles/metered-network.ts";

/** The default configuration. */
export const config = readConfig({
  SOCIAL_API_URL: "http://network",
  SOCIAL_API_TOKEN: "token",
  SOLANA_RPC_URL: "http://chain",
  FEE_PAYER_KEYPAIR: JSON.stringify([...Keypair.generate().secretKey]),
  ESCROW_PROGRAM_ID: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
});

/**
 * Lookups against a network with the real limits, in simulated time. `settings` override the
 * defaults.
 */
export function createSimulation(settings: Partial<Config> = {}, callsPerWindow?: number) {
  const needs = { ...config, ...settings, redis: undefined, log: createLogger("silent") };
  const { callUpstream, meter } = createMeteredNetwork(callsPerWindow);
  const quota = createCallQuota(needs);
  const circuitBreaker = createCircuitBreaker({ ...needs, warnings: createWarnings(needs.log) });
  const upstream = { quota, circuitBreaker, callUpstream };
  const client = createSocialClient({ ...needs, ...upstream, token: "token" });
  const lookup = createAccountLookup({ ...needs, client, budget: createReadBudget(needs) });
  const admit = createRateLimit({ rateLimitMax: config.rateLimitMax });
  let handles = 0;

  /** A caller at its own address, who counts the answers it gets. */
  function newCaller(address: string, signal = new AbortController().signal) {
    const caller = { signal, addressBlock: address };
    const counts: Record<string, number> = {};
    const add = (answers: readonly unknown[]) => {
      for (const answer of answers) {
        const result = answer instanceof SocialError ? answer.failure.kind : "found";
        counts[result] = (counts[result] ?? 0) + 1;
      }
    };
    return {
      counts,
      /** Looks up new handles in one request, unless the rate limit refuses it. */
      async request(count: number, prefix = "handle"): Promise<void> {
        if ((await admit(address, 1)).refusal) return;
        const names = Array.from({ length: count }, () => `${prefix}${handles++}`);
        add(await lookup.findByHandles(names, caller));
      },
      /**
       * Looks up ids in one request, which may be that of a subscription, unless the rate limit
       * refuses it.
       */
      async requestByIds(ids: readonly string[]): Promise<void> {
        if ((await admit(address, 1)).refusal) return;
        add(await lookup.findByIds(ids, caller));
      },
    };
  }
  return { meter, newCaller };
}
