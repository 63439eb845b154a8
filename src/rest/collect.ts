import { isUtf8 } from "node:buffer";
import { ContractError, quote } from "../contract/contract-error.ts";
import { ERROR_CODES, type ErrorCode } from "../contract/error-codes.ts";
import { invalidMint, MAX_MINTS, MINT_PATTERN, NAME_COINS } from "../contract/mint.ts";
import { invalidSocialId, SOCIAL_ID_EXPECTED, SOCIAL_ID_PATTERN } from "../contract/social-id.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { encodingProblem } from "../graphql/json-body.ts";
import { parseJson } from "../upstream/parse-json.ts";
import { readBody } from "./body.ts";
import type { EndpointDescription, EndpointAnswer } from "./endpoint-description.ts";
import type { PrepareOperation } from "./prepared-operation.ts";
import { respondJson } from "./respond.ts";

const COLLECT_OPERATION = /* GraphQL */ `
  mutation Collect($socialId: String!, $mints: [String!]) {
    collect(socialId: $socialId, mints: $mints) {
      success
      collected
      newBalance
      txSignature
      remaining
      error
      message
      lastCollect {
        collected
        newBalance
        txSignature
        at
      }
    }
  }
`;

interface CollectData {
  readonly collect: {
    readonly success: boolean;
    readonly collected: string;
    readonly newBalance: string | null;
    readonly txSignature: string | null;
    readonly remaining: string;
    readonly error: string | null;
    readonly message: string | null;
    readonly lastCollect: object | null;
  };
}

/** A body with only the id has about 40 bytes; clients may send other members too. */
const MAX_BODY_BYTES = 16_384;
const EXAMPLE_BODY = { socialId: "1523400000000000123" };
const BODY_EXPECTED = `The body must be a JSON object such as ${JSON.stringify(EXAMPLE_BODY)}`;

const EXAMPLE_RESULT = {
  success: true,
  collected: "3.1000",
  newBalance: "8.3000",
  txSignature: "42qK9sykqzVQveRfwYzZjQ2QHDw1NYUYXRgicww7BFCNmmvfkKJRwugz177F9fxBzwHn6uSEDDiJH6JiGPtX8n9E",
};

const EXAMPLE_NOTHING = {
  success: false,
  error: "NOTHING_TO_COLLECT",
  message: `${ERROR_CODES.NOTHING_TO_COLLECT.message} ${NAME_COINS}`,
  collected: "0.0000",
};

const LAST_COLLECT = {
  collected: EXAMPLE_RESULT.collected,
  newBalance: EXAMPLE_RESULT.newBalance,
  txSignature: EXAMPLE_RESULT.txSignature,
};

const COLLECTED = {
  name: "CollectResult",
  status: 200,
  description: "A confirmed transaction moved the fees.",
  members: ["success", "collected", "newBalance", "txSignature", "remaining"],
  fixed: { success: true },
  withMints: { member: "remaining", example: { ...EXAMPLE_RESULT, remaining: "0.0000" } },
  example: EXAMPLE_RESULT,
} as const satisfies EndpointAnswer;

const NOTHING = {
  name: "NothingToCollect",
  status: ERROR_CODES.NOTHING_TO_COLLECT.status,
  description: `${ERROR_CODES.NOTHING_TO_COLLECT.message} No transaction was sent, unless another party emptied the vault on the chain at the same moment.`,
  members: ["success", "error", "message", "collected", "remaining", "lastCollect"],
  fixed: { success: false, error: "NOTHING_TO_COLLECT" satisfies ErrorCode },
  withMints: {
    member: "remaining",
    example: { ...EXAMPLE_NOTHING, message: ERROR_CODES.NOTHING_TO_COLLECT.message, remaining: "0.0000" },
  },
  ifKnown: {
    member: "lastCollect",
    example: { ...EXAMPLE_NOTHING, lastCollect: { ...LAST_COLLECT, at: "2026-11-23T09:30:00.000Z" } },
  },
  example: EXAMPLE_NOTHING,
} as const satisfies EndpointAnswer;

/** The description of `POST /collect`. */
export const COLLECT_ENDPOINT = {
  method: "POST",
  path: "/collect",
  contractOperation: "collect",
  operationId: "collectFees",
  summary: "Move an account's fees from the launch platform's vault to its address",
  description:
    "Anyone may collect for any account; the service pays the transaction fee. " +
    "The response arrives when the chain has confirmed the transaction, usually within seconds. " +
    "Concurrent calls for one account share one transaction and its result. " +
    "If you lost a response, collect again: `NOTHING_TO_COLLECT` has `lastCollect`, what this service collected for the account within the last hour. " +
    "Name coins in `mints` to also move the fees that wait on them: as many as fit into one transaction, the largest first. `remaining` is what still waits on them; another collect moves it. A coin that cannot be swept is left out. " +
    "If the message of `COLLECT_FAILED` has a signature, it also says whether that transaction may still land. If so, look it up by its signature or collect again, which waits for it and never moves the same fees twice.",
  request: {
    requestBody: {
      required: true,
      description: `A JSON object of at most ${MAX_BODY_BYTES} bytes. Other members are ignored.`,
      content: {
        "application/json": {
          schema: {
            type: "object",
            required: ["socialId"],
            properties: {
              socialId: {
                type: "string",
                pattern: SOCIAL_ID_PATTERN.source,
                description: `The \`socialId\` from the lookup, not the handle: ${SOCIAL_ID_EXPECTED}. A string, because a JSON number cannot hold all digits.`,
              },
              mints: {
                type: ["array", "null"],
                maxItems: MAX_MINTS,
                items: { type: "string", pattern: MINT_PATTERN.source },
                description: "The mints of coins, in base58. The fees that wait on them are collected too.",
              },
            },
          },
          example: EXAMPLE_BODY,
        },
      },
    },
  },
  graphqlOperation: COLLECT_OPERATION,
  answers: [COLLECTED, NOTHING],
  failure: { name: "CollectError", members: { success: false } },
  errorExamples: [
    invalidSocialId("creator"),
    invalidMint("nonsense"),
    tooLarge(),
    budgetUsed(),
    new ContractError("COLLECT_FAILED"),
  ],
} satisfies EndpointDescription;

/** `POST /collect`: runs the GraphQL mutation and returns its result; nothing to collect is a 400. */
export function createCollectHandler(
  prepare: PrepareOperation,
): (request: Request, scope: RequestScope) => Promise<Response> {
  const run = prepare<CollectData>(COLLECT_OPERATION);
  return async (request, scope) => {
    const body = await readBody(request, MAX_BODY_BYTES).catch(() => new Uint8Array());
    if (body === "too large") throw tooLarge();
    const { socialId, mints } = readMembers(body, request);

    const { collect } = await run({ socialId, mints }, scope).catch((cause: unknown) => {
      throw cause instanceof ContractError ? cause : new ContractError("COLLECT_FAILED", { cause });
    });
    if (collect.error) scope.recordCode(collect.error);
    const { status, members, withMints } = collect.success ? COLLECTED : NOTHING;
    const shown = members.filter(
      (name) => collect[name] !== null && (name !== withMints.member || mints.length > 0),
    );
    return respondJson(status, Object.fromEntries(shown.map((name) => [name, collect[name]])));
  };
}

function tooLarge(): ContractError {
  return new ContractError("INVALID_SOCIAL_ID", {
    status: 413,
    message: `The body is too large: the maximum is ${MAX_BODY_BYTES} bytes. ${BODY_EXPECTED}.`,
  });
}

function budgetUsed(): ContractError {
  return new ContractError("COLLECT_FAILED", {
    message: "The service has used its fee budget for now. Try again in 312 seconds.",
    retryAfterSeconds: 312,
  });
}

/**
 * The id and the mints in the body. A JSON number as id is refused: ids can exceed 2^53, and such a number has already
 * lost digits.
 */
function readMembers(body: Uint8Array, request: Request): { socialId: string; mints: readonly string[] } {
  const text = new TextDecoder().decode(body);
  const value = isUtf8(body) ? parseJson(text) : undefined;
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new ContractError("INVALID_SOCIAL_ID", {
      message: `${BODY_EXPECTED}. ${encodingProblem(body, request) ?? `Received ${quote(text)}.`}`,
    });
  }
  const { socialId, mint, mints: listed } = value as Readonly<Record<string, unknown>>;
  if (typeof socialId !== "string") throw invalidSocialId(socialId);
  if (!Array.isArray(listed ?? []))
    throw new ContractError("INVALID_MINT", { message: "`mints` must be an array of mints." });
  // `mint` is the name in a lookup.
  const mints = [...(mint === undefined || mint === null ? [] : [mint]), ...((listed ?? []) as unknown[])];
  for (const mint of mints) if (typeof mint !== "string") throw invalidMint(mint);
  return { socialId, mints: mints as string[] };
}
