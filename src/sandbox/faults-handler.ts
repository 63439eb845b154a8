import { z } from "zod";
import { respondJson } from "../contract/http-messages.ts";
import type { Fault, Faults, LoopbackAnswer } from "./loopback-server.ts";
import { readJson, refuse, type SandboxScope } from "./request.ts";

const MAX_SECONDS = 300;
/** Less than the gateway's deadlines: the answer is late, but correct. */
const SLOW_MS = 2_000;
/** When a throttled caller may come back. It is then refused again. */
const RETRY_SECONDS = 5;

const UPSTREAMS = ["chain", "network"] as const;
type Upstream = (typeof UPSTREAMS)[number];

/** Without `upstream`, 0 seconds end all faults. */
const Body = z.object({
  upstream: z.enum(UPSTREAMS).optional(),
  fault: z.enum(["fail", "slow", "hang", "throttle"]).optional(),
  seconds: z.int().min(0).max(MAX_SECONDS),
});
type FaultName = NonNullable<z.output<typeof Body>["fault"]>;

const EXPECTED =
  'Send JSON such as {"upstream":"chain","fault":"hang","seconds":30}; {"seconds":0} ends all faults.';

const FAULTS: Readonly<Record<FaultName, Fault<never>>> = {
  fail: { then: { status: 500, body: "The sandbox fails, as it was asked to." } },
  slow: { delayMs: SLOW_MS },
  hang: { then: "hang" },
  throttle: { then: throttle },
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
export function createFaultsHandler(
  faults: Readonly<Record<Upstream, Faults<never>>>,
): (request: Request, scope: SandboxScope) => Promise<Response> {
  const endings = new Map<Upstream, () => void>();

  function start(upstream: Upstream, fault: FaultName, seconds: number): void {
    const remove = faults[upstream].add(FAULTS[fault]);
    const timer = setTimeout(remove, seconds * 1_000).unref();
    endings.set(upstream, () => {
      clearTimeout(timer);
      remove();
    });
  }

  return async (_request, scope) => {
    if (!scope.isLocal) return refuse(403, "Only callers on the sandbox's machine may do this.");
    const parsed = Body.safeParse(await readJson(scope));
    const [issue] = parsed.error?.issues ?? [];
    if (issue?.path[0] !== undefined)
      return refuse(400, `\`${String(issue.path[0])}\`: ${issue.message}. ${EXPECTED}`);
    if (!parsed.success) return refuse(400, EXPECTED);
    const { upstream, fault, seconds } = parsed.data;
    if (seconds > 0 && (!upstream || !fault))
      return refuse(400, `\`upstream\` or \`fault\` is missing. ${EXPECTED}`);
    for (const each of upstream ? [upstream] : UPSTREAMS) endings.get(each)?.();
    if (seconds > 0 && upstream && fault) start(upstream, fault, seconds);
    return respondJson(200, parsed.data);
  };
}
