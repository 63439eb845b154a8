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
  /** The lookup, including its time in the queue, took too long. */
  | { readonly kind: "lookup-timeout" }
  /**
   * The circuit breaker is open after repeated failures: no call was made. The error's cause is the
   * last failure.
   */
  | { readonly kind: "circuit-open"; readonly retryAfterSeconds: number }
  /**
   * A status that is neither 2xx nor `rate-limited`. `problem`: the last part of the problem type's
   * path, or empty. `words`: what the network says, short and without secrets, for the operator;
   * only of a check, because others may name a handle.
   */
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly problem: string;
      readonly words?: string | undefined;
    }
  /** A 403 with an HTML page: the network's firewall refuses this machine's address. */
  | { readonly kind: "blocked" }
  /** `code`: why the connection failed. */
  | { readonly kind: "unreachable"; readonly code?: string | undefined }
  | { readonly kind: "timeout" }
  /** The response does not have the documented form. */
  | { readonly kind: "unreadable" };

/** The error of every function in this folder. Retries depend on `failure`, never on the text. */
export class SocialError extends Error {
  override readonly name = "SocialError";
  readonly failure: SocialFailure;

  constructor(failure: SocialFailure, cause?: unknown) {
    const { kind, status, problem, code } = { status: "", problem: "", code: "", ...failure };
    super(["the social network:", kind, status, problem, code].filter(Boolean).join(" "), {
      cause,
    });
    this.failure = failure;
  }
}

/** Whether the network rejected the format of a call: one invalid name fails a whole batch. */
export function isBadRequest(error: unknown): boolean {
  return (
    error instanceof SocialError && error.failure.kind === "refused" && error.failure.status === 400
  );
}

/**
 * Whether only the operator can help: the network rejects the token, or the app's credit is used
 * up.
 */
export function isOperatorProblem(
  failure: SocialFailure,
): failure is Extract<SocialFailure, { kind: "refused" }> {
  if (failure.kind !== "refused") return false;
  const { status, problem } = failure;
  return status === 401 || status === 402 || status === 403 || problem === "usage-capped";
}

const IN_CONSOLE = "in the network's developer console";

/**
 * What is wrong with the network, and what the operator should do. The token is read only at the
 * start; everything else works again as soon as the network allows it.
 */
export function operatorHint({ failure, cause }: SocialError): string {
  if (failure.kind === "circuit-open" && cause instanceof SocialError) return operatorHint(cause);
  const { kind, status, words, code }: Partial<Record<string, string | number>> = failure;
  const reason = [status ?? code ?? kind, words].filter(Boolean).join(" ");
  const [problem, remedy] = adviceOn(failure);
  return `the social network ${problem} (${reason}): lookups of handles that are not cached fail; ${remedy}`;
}

function adviceOn(failure: SocialFailure): readonly [problem: string, remedy: string] {
  if (failure.kind === "blocked")
    return [
      "answers 403 with a page instead of JSON, so it blocks this machine's address",
      "send its calls from another address, or ask the network to allow this one",
    ];
  if (!isOperatorProblem(failure)) {
    const code = failure.kind === "unreachable" ? failure.code : "";
    const remedy = remedyOf(code ?? "", { protocol: "https:" }) ?? "see the network's status page";
    return ["does not answer as expected", `check SOCIAL_API_URL: ${remedy}`];
  }
  if (failure.status === 401)
    return [
      "refuses SOCIAL_API_TOKEN",
      `check it ${IN_CONSOLE}. If it is invalid, set a new one and restart; if the network accepts it again, no restart is needed`,
    ];
  if (failure.status === 402)
    return [
      "refuses this service's app, whose credit is used up",
      `add credit ${IN_CONSOLE}. No restart is needed`,
    ];
  if (failure.problem === "usage-capped")
    return [
      "refuses this service's app, which has reached its usage cap",
      `raise the cap ${IN_CONSOLE}, or wait for the next period. No restart is needed`,
    ];
  return [
    "refuses access to this service's app",
    `restore its access ${IN_CONSOLE}. A restart is needed only for a new token`,
  ];
}

/** Whether the network is not working: such failures open the circuit breaker. */
export function isOutage(error: unknown): error is SocialError {
  if (!(error instanceof SocialError)) return false;
  const { kind } = error.failure;
  if (kind === "refused") return !isBadRequest(error);
  return ["blocked", "unreachable", "timeout", "unreadable"].includes(kind);
}

/**
 * Whether the same call may succeed a moment later: the connection broke, or the network answered
 * 5xx.
 */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof SocialError)) return false;
  const { failure } = error;
  return failure.kind === "unreachable" || (failure.kind === "refused" && failure.status >= 500);
}
