import { toCollectContractError } from "../chain/errors/to-contract-error.ts";
import { ContractError, quote, type Moved } from "../contract/contract-error.ts";
import {
  isInOtherCharset,
  MAX_BODY_PIECES,
  respondJson,
  toErrorBody,
} from "../contract/http-messages.ts";
import { invalidMinimum, unknownMinimum } from "../contract/minimum.ts";
import { assertMintNames, invalidMint } from "../contract/mint.ts";
import { invalidSocialId, wrongAddress } from "../contract/social-id.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { parseJsonBody, isObject } from "../contract/parse-json.ts";
import type { PrepareOperation } from "./prepared-operation.ts";

const COLLECT_OPERATION = /* GraphQL */ `
  mutation Collect(
    $socialId: String!
    $mints: [String!]!
    $hasMints: Boolean!
    $minimum: String
    $address: String
  ) {
    collect(socialId: $socialId, mints: $mints, minimum: $minimum, address: $address) {
      success
      error
      message
      collected
      newBalance
      txSignature
      remaining @include(if: $hasMints)
      lastCollect {
        collected
        newBalance
        txSignature
        at
      }
      left {
        mint
        amount
        lamports
        reason
      }
      lastCollects {
        collected
        newBalance
        txSignature
        at
      }
    }
  }
`;

type CollectResult = Record<string, unknown> & {
  readonly success: boolean;
  readonly error: string | null;
};

/** A body with only the id has about 40 bytes; clients may send other members too. */
const MAX_BODY_BYTES = 16_384;
const BODY_EXPECTED = 'The body must be a JSON object such as {"socialId":"1523400000000000123"}';
const BODY_TOO_LARGE = {
  status: 413,
  message: `The body is too large: the maximum is ${MAX_BODY_BYTES} bytes, in ${MAX_BODY_PIECES} pieces. ${BODY_EXPECTED}.`,
};

/** The body of a failed collect. Errors that know nothing of what moved arise before the chain. */
export function toCollectErrorBody(error: ContractError): object {
  const { retryAfterSeconds, extensions } = error;
  const body = { success: false, ...toErrorBody(error), moved: "no" satisfies Moved };
  // REST has no exact amounts of earlier collects.
  const lastCollects = (extensions?.lastCollects as readonly object[] | undefined)?.map((each) => ({
    ...each,
    ...{ collectedLamports: undefined, newBalanceLamports: undefined },
  }));
  return { ...body, retryAfterSeconds, ...extensions, lastCollects };
}

/**
 * `POST /collect`: runs the GraphQL mutation and returns its result; nothing to collect is a 400.
 */
export function createCollectHandler(prepare: PrepareOperation) {
  const run = prepare<{ collect: CollectResult }>(COLLECT_OPERATION);
  return async ({ headers }: Request, scope: RequestScope): Promise<Response> => {
    const body = await scope.readBody(MAX_BODY_BYTES);
    if (body === "too large") throw new ContractError("INVALID_SOCIAL_ID", BODY_TOO_LARGE);
    const { collect } = await run(readMembers(body, headers), scope).catch((error: unknown) => {
      throw toCollectContractError(error);
    });
    if (collect.error) scope.recordCode(collect.error);
    // JSON.stringify omits undefined members.
    for (const name in collect) collect[name] ??= undefined;
    if (!collect.success) collect.moved = "no" satisfies Moved;
    return respondJson(collect.success ? 200 : 400, collect);
  };
}

/**
 * Reads the id, the mints, the minimum and the expected address. Refuses a JSON number as id or
 * minimum: a number above 2^53 has already lost digits, and so may a fraction.
 */
function readMembers(body: Buffer, headers: Headers) {
  const value = parseJsonBody(body);
  if (!isObject(value) || isInOtherCharset(headers.get("content-type") ?? ""))
    throw new ContractError("INVALID_SOCIAL_ID", {
      message: `${BODY_EXPECTED}, in UTF-8 and not compressed. Received ${quote(body.toString())}.`,
    });
  assertMintNames(Object.keys(value), ["mints", "mint"]);
  for (const name of Object.keys(value)) if (/^minimum./i.test(name)) throw unknownMinimum(name);
  const { socialId, mint = null, minimum = null, address = null } = value;
  const mintList = value.mints ?? [];
  if (typeof socialId !== "string") throw invalidSocialId(socialId);
  if (!Array.isArray(mintList))
    throw new ContractError("INVALID_MINT", { message: "`mints` must be an array of mints." });
  const namedMints: readonly unknown[] = mintList;
  // Accept `mint` too, because a lookup uses this name.
  const mints = mint === null ? namedMints : [mint, ...namedMints];
  for (const each of mints) if (typeof each !== "string") throw invalidMint(each);
  if (minimum !== null && typeof minimum !== "string") throw invalidMinimum(minimum);
  if (address !== null && typeof address !== "string") throw wrongAddress(socialId, address);
  return { socialId, mints, hasMints: mints.length > 0, minimum, address };
}
