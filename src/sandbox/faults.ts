import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { respondJson } from "../contract/http-messages.ts";
import { addMs, LONG_AGO, monotonicNow, msUntil, type MonotonicTime } from "../time/monotonic.ts";
import type { LoopbackAnswer, LoopbackServer } from "./loopback-server.ts";
import { readJson, refuse, type SandboxScope } from "./request.ts";

const MAX_SECONDS = 300;
/** Less than the gateway's deadlines: the answer is late, but correct. */
const SLOW_MS = 2_000;
/** When a throttled caller may come back. It is then refused again. */
const RETRY_SECONDS = 5;

const UPSTREAMS = ["chain", "network"] as const;
const FAULTS = ["fail", "slow", "hang", "throttle"] as const;
type Upstream = (typeof UPSTREAMS)[number];

const Body = z.union([
  z.object({
    upstream: z.enum(UPSTREAMS),
    fault: z.enum(FAULTS),
    seconds: z.int().min(1).max(MAX_SECONDS),
  }),
  z.object({ seconds: z.literal(0) }),
]);

const EXPECTED = `Send JSON such as {"upstream":"chain","fault":"hang","seconds":30}, or {"seconds":0} to end all faults. \`upstream\` is one of ${UPSTREAMS.join(", ")}; \`fault\` is one of ${FAULTS.join(", ")}; \`seconds\` are at most ${MAX_SECONDS}.`;

const FAILURE: LoopbackAnswer = {
  status: 500,
  body: "The sandbox fails, as it was asked to.",
};

const NO_FAULT: { fault: string; endsAt: MonotonicTime } = { fault: "", endsAt: LONG_AGO };

/** Each upstream reads its own headers: the chain's client `Retry-After`, the network's the others. */
function throttle(): LoopbackAnswer {
  const headers = {
    "retry-after": String(RETRY_SECONDS),
    "x-rate-limit-remaining": "0",
    "x-rate-limit-reset": String(Math.ceil(Date.now() / 1000) + RETRY_SECONDS),
  };
  return { status: 429, headers, body: "The sandbox throttles, as it was asked to." };
}

/**
 * `POST /sandbox/faults`: makes an upstream fail for a time, so that a client's error handling can
 * be tried. Only a gateway with a sandbox has this route, and only callers on its machine may use
 * it.
 */
export function createFaultsHandler(servers: Readonly<Record<Upstream, LoopbackServer>>) {
  const faults = { chain: NO_FAULT, network: NO_FAULT };

  for (const upstream of UPSTREAMS) {
    const server = servers[upstream];
    const { handle } = server;
    server.handle = async (request) => {
      const { fault, endsAt } = faults[upstream];
      if (msUntil(endsAt) <= 0) return handle(request);
      if (fault === "fail") return FAILURE;
      if (fault === "throttle") return throttle();
      if (fault === "hang") return new Promise<never>(() => undefined);
      await sleep(SLOW_MS);
      return handle(request);
    };
  }

  return async (_request: Request, scope: SandboxScope) => {
    if (!scope.isLocal) return refuse(403, "Only callers on the sandbox's machine may do this.");
    const { data } = Body.safeParse(await readJson(scope));
    if (!data) return refuse(400, EXPECTED);
    if ("fault" in data) {
      const { upstream, fault, seconds } = data;
      faults[upstream] = { fault, endsAt: addMs(monotonicNow(), seconds * 1_000) };
    } else for (const upstream of UPSTREAMS) faults[upstream] = NO_FAULT;
    return respondJson(200, data);
  };
}
