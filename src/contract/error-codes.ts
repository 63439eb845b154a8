export type ContractOperation = "lookup" | "wallets" | "collect";

interface ErrorCodeRow {
  readonly status: number;
  /** What is wrong, and what the caller can do. A thrown error may have a more precise message. */
  readonly message: string;
  /** Whether and when the same request may succeed. */
  readonly retry: string;
  /** Whole seconds, at least 1. A thrown error may have another value. */
  readonly retryAfterSeconds?: number;
  /** Absent: the code concerns HTTP, not an operation. */
  readonly operations?: readonly ContractOperation[];
}

const CHANGE_REQUEST = "No: change the request.";
const IN_A_MINUTE = "In a minute.";

/**
 * Every error code. The OpenAPI document, GraphQL's `ErrorCode` and the tests follow from this
 * table. Source of the first three groups: sections 4 and 7 of the specification. The last group is
 * ours.
 */
export const ERROR_CODES = {
  HANDLE_REQUIRED: {
    status: 400,
    message: "The query parameter `handle` is missing. Add ?handle=<name>.",
    retry: CHANGE_REQUEST,
    operations: ["lookup"],
  },
  INVALID_HANDLE: {
    status: 400,
    message:
      "The handle must be 1-15 alphanumeric characters, and underscores if the operator allows them.",
    retry: CHANGE_REQUEST,
    operations: ["lookup"],
  },
  SOCIAL_NOT_FOUND: {
    status: 404,
    message:
      "The account does not exist on the social network, or is suspended. Check the spelling.",
    retry: "No: check the spelling. A new account is found within a minute.",
    operations: ["lookup"],
  },
  SOCIAL_RATE_LIMITED: {
    status: 429,
    message:
      "The social network's rate limit is used up. Try again after the number of seconds in Retry-After (GraphQL: extensions.retryAfterSeconds).",
    retry: "After the number of seconds in Retry-After.",
    operations: ["lookup"],
  },
  SOCIAL_API_UNAVAILABLE: {
    status: 503,
    message: "The social network is temporarily unavailable. Try again in a minute.",
    retry: IN_A_MINUTE,
    operations: ["lookup"],
  },
  SERVICE_BUSY: {
    status: 503,
    message: "Too many lookups are waiting. Try again in 30 seconds.",
    retry: "After the number of seconds in Retry-After.",
    retryAfterSeconds: 30,
    operations: ["lookup"],
  },
  LOOKUP_FAILED: {
    status: 500,
    message:
      "The lookup failed. Try again in a minute. If it fails again, send the X-Request-Id of this response to the operator.",
    retry: IN_A_MINUTE,
    operations: ["lookup"],
  },

  INVALID_SOCIAL_ID: {
    status: 400,
    message: "`socialId` must be the numeric id of an account. A lookup returns it.",
    retry: CHANGE_REQUEST,
    operations: ["collect"],
  },
  NOTHING_TO_COLLECT: {
    status: 400,
    message:
      "The vault is empty, or holds too little to be worth a transaction. Try again after more trading.",
    retry: "After more trading, or with the coins named on which fees wait.",
    operations: ["collect"],
  },
  INSUFFICIENT_FUNDS: {
    status: 500,
    message:
      "The service cannot pay the transaction fee at the moment. Nothing was moved. Try again later.",
    retry: "Later: the operator has to fund the fee payer.",
    operations: ["collect"],
  },
  COLLECT_FAILED: {
    status: 500,
    message:
      "The collect failed. Try again in a minute. If it fails again, send the X-Request-Id of this response to the operator.",
    retry: "In a minute. A collect never moves the same fees twice.",
    operations: ["collect"],
  },

  RATE_LIMITED: {
    status: 429,
    message:
      "Too many requests from this address. Try again after the number of seconds in Retry-After.",
    retry:
      "After the number of seconds in Retry-After. GraphQL's `wallets` looks up many accounts in one request.",
    operations: ["lookup", "wallets", "collect"],
  },

  INVALID_MINT: {
    status: 400,
    message: "A mint must be a Solana address in base58, at most 10 per lookup or collect.",
    retry: CHANGE_REQUEST,
    operations: ["lookup", "wallets", "collect"],
  },
  INVALID_MINIMUM: {
    status: 400,
    message: "`minimum` must be a string of SOL with at most nine digits after the point.",
    retry: CHANGE_REQUEST,
    operations: ["collect"],
  },
  BAD_REQUEST: {
    status: 400,
    message: "The request is not valid.",
    retry: CHANGE_REQUEST,
    operations: ["wallets"],
  },
  NOT_FOUND: {
    status: 404,
    message: "There is nothing at this path. The file openapi.json describes the endpoints.",
    retry: CHANGE_REQUEST,
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: "This method is not allowed here. The Allow header lists the allowed methods.",
    retry: CHANGE_REQUEST,
  },
  ORIGIN_NOT_ALLOWED: {
    status: 403,
    message: "Pages of this origin may not call the service.",
    retry: "No: ask the operator.",
  },
} as const satisfies Record<string, ErrorCodeRow>;

export type ErrorCode = keyof typeof ERROR_CODES;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}

/** The row of a code, without the table's literal types. */
export function rowOf(code: ErrorCode): ErrorCodeRow {
  return ERROR_CODES[code];
}

/** What a code means, without the end of its message that says when to try again: see `retry`. */
export function meaningOf(code: ErrorCode): string {
  return ERROR_CODES[code].message.replace(/ Try again.*/, "");
}

/** The codes that an operation returns, in the table's order. */
export function codesOf(operation: ContractOperation): ErrorCode[] {
  return Object.keys(ERROR_CODES)
    .filter(isErrorCode)
    .filter((code) => rowOf(code).operations?.includes(operation));
}
