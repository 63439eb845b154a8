import type { Shortage } from "../fairness/budget.ts";
import { remedyOf } from "../observability/connection-error.ts";

/** Why a lookup found no account. */
export type SocialFailure =
  /** The network has no such account, or does not show it, for example because it is suspended. */
  | { readonly kind: "not-found" }
  /** The network allows no calls until its reset. */
  | { readonly kind: "rate-limited"; readonly retryAfterSeconds: number }
  /** Too many lookups wait for the network. */
  | { readonly kind: "queue-full" }
  /** The caller or the service has read as many accounts as the budget allows. */
  | ({ readonly kind: "budget-used" } & Required<Shortage>)
  /**
   * The circuit breaker is open after repeated failures: no call was made. The error's cause is the
   * last failure.
   */
  | { readonly kind: "circuit-open"; readonly retryAfterSeconds: number }
  /**
   * A status that is neither 2xx nor `rate-limited`. `problem`: the last part of the problem type's
   * path, or empty; "blocked" if the network's firewall refuses this machine's address. `words`:
   * what the network says, short and without secrets, for the operator; only of a check, because
   * others may name a handle.
   */
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly problem: string;
      readonly words?: string | undefined;
    }
  /** `code`: why the connection failed. */
  | { readonly kind: "unreachable"; readonly code?: string | undefined }
  /** The call took too long, or the lookup with its time in the queue. */
  | { readonly kind: "timeout" }
  /** The response does not have the documented form. */
  | { readonly kind: "unreadable" };

/** The members that some failures have. */
type Details = Partial<Record<string, string | number>>;

/** The error of every function in this folder. Retries depend on `failure`, never on the text. */
export class SocialError extends Error {
  override readonly name = "SocialError";
  readonly failure: SocialFailure;

  constructor(failure: SocialFailure, cause?: unknown) {
    const { kind, status, problem, code }: Details = failure;
    super(["the social network:", kind, status, problem, code].filter(Boolean).join(" "), {
      cause,
    });
    this.failure = failure;
  }
}

/** Whether the network rejected the format of a call: one invalid name fails a whole batch. */
export const isBadRequest = ({ failure }: SocialError): boolean =>
  failure.kind === "refused" && failure.status === 400;

/** Whether a call failed because the network is not working: this opens the circuit breaker. */
export const isOutage = (error: SocialError): boolean =>
  error.failure.kind !== "rate-limited" && !isBadRequest(error);

/**
 * Whether the same call may succeed a moment later: the connection broke, or the network answered
 * 5xx.
 */
export const isTransient = ({ failure }: SocialError): boolean =>
  failure.kind === "unreachable" || (failure.kind === "refused" && failure.status >= 500);

/**
 * Whether only the operator can help: the network rejects the token, or the app's credit is used
 * up.
 */
export function isOperatorProblem(failure: SocialFailure): boolean {
  if (failure.kind !== "refused" || failure.problem === "blocked") return false;
  return [401, 402, 403].includes(failure.status) || failure.problem === "usage-capped";
}

const IN_CONSOLE = "in the network's developer console";

/** What is wrong, and what to do, by the kind of the failure, or its problem or status. */
const ADVICE = new Map<unknown, readonly [problem: string, remedy: string]>([
  [
    "blocked",
    [
      "answers 403 with a page instead of JSON, so it blocks this machine's address",
      "send its calls from another address, or ask the network to allow this one",
    ],
  ],
  [
    "usage-capped",
    [
      "refuses this service's app, which has reached its usage cap",
      `raise the cap ${IN_CONSOLE}, or wait for the next period. No restart is needed`,
    ],
  ],
  [
    401,
    [
      "refuses SOCIAL_API_TOKEN",
      `check it ${IN_CONSOLE}. If it is invalid, set a new one and restart; if the network accepts it again, no restart is needed`,
    ],
  ],
  [
    402,
    [
      "refuses this service's app, whose credit is used up",
      `add credit ${IN_CONSOLE}. No restart is needed`,
    ],
  ],
  [
    403,
    [
      "refuses access to this service's app",
      `restore its access ${IN_CONSOLE}. A restart is needed only for a new token`,
    ],
  ],
]);

/**
 * What is wrong with the network, and what the operator should do. The token is read only at the
 * start; everything else works again as soon as the network allows it.
 */
export function operatorHint({ failure, cause }: SocialError): string {
  if (failure.kind === "circuit-open" && cause instanceof SocialError) return operatorHint(cause);
  const { kind, status, problem, words, code }: Details = failure;
  const elsewhere =
    remedyOf(String(code), { protocol: "https:" }) ?? "see the network's status page";
  const [wrong, remedy] = ADVICE.get(problem) ??
    ADVICE.get(status ?? kind) ?? [
      "does not answer as expected",
      `check SOCIAL_API_URL: ${elsewhere}`,
    ];
  const reason = [status ?? code ?? kind, words].filter(Boolean).join(" ");
  return `the social network ${wrong} (${reason}): lookups of handles that are not cached fail; ${remedy}`;
}
