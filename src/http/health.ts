import { Gauge, type Registry } from "@prometheus-io/client";
import { respondJson } from "../contract/http-messages.ts";
import type { Rpc } from "../chain/rpc/rpc-client.ts";
import type { Warnings } from "../observability/warnings.ts";
import type { SocialClient } from "../social/api-client.ts";
import { SOCIAL_SUBJECT } from "../social/circuit-breaker.ts";
import { memoize } from "../store/memoize.ts";
import { REDIS_SUBJECT } from "../store/redis.ts";

/** Probes within this time share one check: lookups may need the calls. */
const CHECK_MAX_AGE_MS = 5_000;

const CHAIN_AWAY =
  "no chain endpoint answers, so lookups of balances and collects fail: check SOLANA_RPC_URL and its providers";

export type Health = ReturnType<typeof createHealth>;

/**
 * `/livez` returns 200. `/readyz` returns 503 while the process starts or stops, and until the
 * chain is first read. An upstream's outage is only a warning: with 503 from all replicas, a
 * balancer would answer callers itself. `/readyz` and scrapes check the chain, and the social
 * network while it is down. `/readyz` waits only before the first read.
 */
export function createHealth(needs: {
  rpc: Pick<Rpc, "getSlot" | "problems">;
  socialClient: Pick<SocialClient, "check">;
  hasRedis: boolean;
  warnings: Warnings;
  registry: Registry;
}) {
  const { rpc, socialClient, warnings, registry } = needs;
  let isStarting = false;
  let hasReadChain = false;
  let isDraining = false;

  const check = memoize(async () => {
    if (warnings.has(SOCIAL_SUBJECT)) void socialClient.check();
    try {
      await rpc.getSlot();
      hasReadChain = true;
      warnings.clear("chain", "the chain answers again");
    } catch {
      warnings.raise("chain", CHAIN_AWAY);
    }
  }, CHECK_MAX_AGE_MS);

  /** The subjects of the warnings about the upstreams. */
  const subjects = ["chain", SOCIAL_SUBJECT, ...(needs.hasRedis ? [REDIS_SUBJECT] : [])];
  /** Why `/readyz` returns 503; undefined if it returns 200. */
  function findReason(): string | undefined {
    if (isDraining) return "shutting down";
    return isStarting || !hasReadChain ? "starting" : undefined;
  }

  function describe() {
    const reason = findReason();
    const list = [...warnings.list(), ...rpc.problems()];
    return {
      status: reason ? "unavailable" : "ok",
      ...(reason && { reasons: [reason] }),
      ...(list.length > 0 && { warnings: list }),
    };
  }

  new Gauge({
    name: "tributary_ready",
    help: "1 while /readyz returns 200.",
    registers: [registry],
    collect() {
      this.set(findReason() ? 0 : 1);
    },
  });
  new Gauge({
    name: "tributary_upstream_up",
    help: "1 while the upstream (chain, social or redis) answers; 0 once it does not, or refuses this service.",
    labelNames: ["upstream"],
    registers: [registry],
    collect() {
      void check();
      for (const upstream of subjects) this.set({ upstream }, warnings.has(upstream) ? 0 : 1);
    },
  });

  return {
    livez: () => respondJson(200, { status: "ok" }),

    /** Without `hasDetails`, the body has only the status. */
    async readyz(hasDetails: boolean): Promise<Response> {
      const pendingCheck = check();
      // Wait only before the first read: later, a probe would time out whenever the chain does.
      if (!hasReadChain) await pendingCheck;
      const { status, ...details } = describe();
      return respondJson(status === "ok" ? 200 : 503, { status, ...(hasDetails && details) });
    },
    /** What `/readyz` shows to operators, without a check. */
    describe,
    /** Records that the chain has been read: later outages do not make `/readyz` return 503. */
    chainRead(): void {
      hasReadChain = true;
    },
    /** `/readyz` returns 503 until `start` resolves. */
    async waitForStart(start: Promise<unknown>): Promise<void> {
      isStarting = true;
      await start;
      isStarting = false;
    },
    /** `/readyz` returns 503 from now on. */
    drain(): void {
      isDraining = true;
    },
  };
}
