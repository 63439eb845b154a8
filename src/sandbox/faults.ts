import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { respondJson } from "../contract/http-messages.ts";
import { addMs, monotonicNow, msUntil, type MonotonicTime } from "../time/monotonic.ts";
import type { LoopbackServer } from "./loopback-server.ts";
import { createRoute, refuse } from "./route.ts";

/** Less than the gateway's deadlines: the answer is late, but correct. */
const SLOW_MS = 2_000;
/** When a throttled caller may come back. It is then refused again. */
const RETRY_SECONDS = 5;

const Faults = z.enum(["fail", "slow", "hang", "throttle"]);
type Fault = z.infer<typeof Faults>;

const Body = z.union([
  z.object({
    upstream: z.enum(["chain", "network"]),
    fault: Faults,
    seconds: z.int().min(1).max(300),
  }),
  z.object({ seconds: z.literal(0) }),
]);

const EXPECTED =
  'Send JSON such as {"upstream":"chain","fault":"hang","seconds":30}, or {"seconds":0} to end all faults. `upstream` is chain or network; `fault` is fail, slow, hang or throttle; `seconds` are at most 300.';

type Answer = ReturnType<LoopbackServer["handle"]>;

/** What an upstream answers instead of its own `answer`. */
const ANSWERS: Readonly<Record<Fault, (answer: () => Answer) => Answer>> = {
  fail: () => ({ status: 500, body: "The sandbox fails, as it was asked to." }),
  slow: (answer) => sleep(SLOW_MS).then(answer),
  hang: () => new Promise<never>(() => undefined),
  throttle: () => ({
    status: 429,
    headers: {
      // The chain's client reads this one, the network's the others.
      "retry-after": String(RETRY_SECONDS),
      "x-rate-limit-remaining": "0",
      "x-rate-limit-reset": String(Math.ceil(Date.now() / 1000) + RETRY_SECONDS),
    },
    body: "The sandbox throttles, as it was asked to.",
  }),
};

/**
 * `POST /sandbox/faults`: makes an upstream fail for a time, so that a client's error handling can
 * be tried. Only callers on the sandbox's machine may use it.
 */
export function createFaultsRoute(servers: { chain: LoopbackServer; network: LoopbackServer }) {
  const faults = new Map<string, { readonly fault: Fault; readonly endsAt: MonotonicTime }>();

  for (const [upstream, server] of Object.entries(servers)) {
    const { handle } = server;
    server.handle = (request) => {
      const active = faults.get(upstream);
      return active && msUntil(active.endsAt) > 0
        ? ANSWERS[active.fault](() => handle(request))
        : handle(request);
    };
  }

  return createRoute(Body, EXPECTED, (body, { isLocal }) => {
    if (!isLocal) return refuse(403, "Only callers on the sandbox's machine may do this.");
    if ("fault" in body) {
      const { upstream, fault, seconds } = body;
      faults.set(upstream, { fault, endsAt: addMs(monotonicNow(), seconds * 1_000) });
    } else faults.clear();
    return respondJson(200, body);
  });
}
