import { quote } from "../contract/contract-error.ts";
import { respondJson, type ReadBody } from "../contract/http-messages.ts";
import { isObject, parseJsonBody } from "../contract/parse-json.ts";
import type { Fault, Faults, LoopbackAnswer } from "./loopback-server.ts";

const UPSTREAMS = ["chain", "network"] as const;
type Upstream = (typeof UPSTREAMS)[number];

const FAULT_NAMES = ["fail", "slow", "hang", "throttle"] as const;
type FaultName = (typeof FAULT_NAMES)[number];

const MAX_SECONDS = 300;
/** Less than the gateway's deadlines: the answer is late, but correct. */
const SLOW_MS = 2_000;
/** When a throttled caller may come back. It is then refused again. */
const RETRY_SECONDS = 5;
const MAX_BODY_BYTES = 1024;
const EXPECTED =
  'Send JSON such as {"upstream":"chain","fault":"hang","seconds":30}; {"seconds":0} ends all faults.';

/** Each upstream reads its own headers: the chain's client `Retry-After`, the network's the others. */
function throttle(): LoopbackAnswer {
  const headers = {
    "retry-after": String(RETRY_SECONDS),
    "x-rate-limit-remaining": "0",
    "x-rate-limit-reset": String(Math.ceil(Date.now() / 1000) + RETRY_SECONDS),
  };
  return { status: 429, headers, body: "The sandbox throttles, as it was asked to." };
}

const FAULTS: Readonly<Record<FaultName, Fault<never>>> = {
  fail: { then: { status: 500, body: "The sandbox fails, as it was asked to." } },
  slow: { delayMs: SLOW_MS },
  hang: { then: "hang" },
  throttle: { then: throttle },
};

const isOneOf = <Name extends string>(names: readonly Name[], value: unknown): value is Name =>
  names.some((name) => name === value);

const isSeconds = (value: number) => Number.isInteger(value) && value >= 0 && value <= MAX_SECONDS;

function refuse(status: number, message: string): Response {
  // No error code of the contract fits, and the contract does not know this route.
  return respondJson(status, { error: "BAD_REQUEST", message });
}

function refuseMember(name: string, expected: string, value: unknown): Response {
  if (value === undefined) return refuse(400, `\`${name}\` is missing: ${expected}.`);
  const received = typeof value === "number" ? value : quote(value);
  return refuse(400, `\`${name}\` must be ${expected}. Received ${received}.`);
}

/**
 * `POST /sandbox/faults`: makes an upstream fail for a time, so that a client's error handling can
 * be tried. Only a gateway with a sandbox has this route, and only callers on its machine may use
 * it.
 */
export function createFaultsHandler(
  faults: Readonly<Record<Upstream, Faults<never>>>,
): (
  request: Request,
  scope: { readonly readBody: ReadBody; readonly isLocal: boolean },
) => Promise<Response> {
  const endings = new Map<Upstream, () => void>();

  function end(upstream: Upstream): void {
    endings.get(upstream)?.();
    endings.delete(upstream);
  }

  function start(upstream: Upstream, fault: FaultName, seconds: number): void {
    const remove = faults[upstream].add(FAULTS[fault]);
    const timer = setTimeout(end, seconds * 1_000, upstream).unref();
    endings.set(upstream, () => {
      clearTimeout(timer);
      remove();
    });
  }

  return async (_request, scope) => {
    if (!scope.isLocal) return refuse(403, "Only callers on the sandbox's machine may do this.");
    const bytes = await scope.readBody(MAX_BODY_BYTES);
    const body = bytes === "too large" ? undefined : parseJsonBody(bytes);
    if (!isObject(body)) return refuse(400, EXPECTED);
    const { upstream, fault, seconds } = body;
    if (typeof seconds !== "number" || !isSeconds(seconds))
      return refuseMember(
        "seconds",
        `a whole number from 0, which ends the fault, to ${MAX_SECONDS}`,
        seconds,
      );
    const isEnd = seconds === 0;
    if (!isOneOf(UPSTREAMS, upstream) && !(isEnd && upstream === undefined))
      return refuseMember("upstream", UPSTREAMS.map(quote).join(" or "), upstream);
    if (!isOneOf(FAULT_NAMES, fault) && !(isEnd && fault === undefined))
      return refuseMember("fault", `one of ${FAULT_NAMES.map(quote).join(", ")}`, fault);
    for (const each of upstream === undefined ? UPSTREAMS : [upstream]) end(each);
    if (!isEnd && upstream && fault) start(upstream, fault, seconds);
    return respondJson(200, { upstream, fault, seconds });
  };
}
