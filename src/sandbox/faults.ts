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
type Upstream = (typeof UPSTREAMS)[number];

/** Without `upstream`, 0 seconds end all faults. */
const Body = z
  .object({
    upstream: z.enum(UPSTREAMS).optional(),
    fault: z.enum(["fail", "slow", "hang", "throttle"]).optional(),
    seconds: z.int().min(0).max(MAX_SECONDS),
  })
  .refine(
    ({ upstream, fault, seconds }) => seconds === 0 || (upstream && fault),
    "`upstream` or `fault` is missing",
  );

const EXPECTED =
  'Send JSON such as {"upstream":"chain","fault":"hang","seconds":30}; {"seconds":0} ends all faults.';

const FAILURE: LoopbackAnswer = {
  status: 500,
  body: "The sandbox fails, as it was asked to.",
};

const NO_FAULT: { fault: string | undefined; endsAt: MonotonicTime } = {
  fault: undefined,
  endsAt: LONG_AGO,
};

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
    const { data, error } = Body.safeParse(await readJson(scope));
    if (!data) {
      const [issue] = error.issues;
      return refuse(400, `${[...issue!.path, issue!.message].join(": ")}. ${EXPECTED}`);
    }
    const { upstream, fault, seconds } = data;
    const endsAt = addMs(monotonicNow(), seconds * 1_000);
    for (const each of upstream ? [upstream] : UPSTREAMS) faults[each] = { fault, endsAt };
    return respondJson(200, data);
  };
}
