import { ContractError } from "../errors.ts";
import type { Caller } from "../resolvers/caller.ts";
import { readBody } from "./body.ts";
import type { Prepare } from "./operation.ts";
import { respondError, respondJson } from "./respond.ts";

const COLLECT_OPERATION = /* GraphQL */ `
  mutation Collect($socialId: String!) {
    collect(socialId: $socialId) {
      success
      collected
      newBalance
      txSignature
      error
      message
    }
  }
`;

interface CollectData {
  readonly collect: {
    readonly success: boolean;
    readonly collected: string;
    readonly newBalance: string | null;
    readonly txSignature: string | null;
    readonly error: string | null;
    readonly message: string | null;
  };
}

/** A body with one id is some 40 bytes; this leaves room for whatever else a client sends along. */
const MAX_BODY_BYTES = 16_384;

export type Collect = (request: Request, caller: Caller) => Promise<Response>;

/** `POST /collect`: the result as the schema gives it, an empty vault as 400. */
export function createCollect(prepare: Prepare): Collect {
  const run = prepare<CollectData>(COLLECT_OPERATION);
  return async (request, caller) => {
    const body = await readBody(request, MAX_BODY_BYTES).catch(() => new Uint8Array());
    if (body === "too large") {
      const error = new ContractError("INVALID_SOCIAL_ID");
      caller.note(error.code);
      return respondError(error, {
        status: 413,
        headers: { connection: "close" },
      });
    }
    const socialId = readSocialId(body);

    const { collect } = await run({ socialId }, caller).catch((cause: unknown) => {
      throw cause instanceof ContractError ? cause : new ContractError("COLLECT_FAILED", { cause });
    });
    const { success, collected, newBalance, txSignature, error, message } = collect;
    if (success) return respondJson(200, { success, collected, newBalance, txSignature });
    caller.note(error!);
    return respondJson(400, { success, error, message, collected });
  };
}

/** The id as the body has it. A JSON number is refused: ids are past 2^53, and it has lost digits already. */
function readSocialId(body: Uint8Array): string {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new ContractError("INVALID_SOCIAL_ID", {
      message: 'The body must be JSON such as {"socialId":"12345"}.',
    });
  }
  const socialId =
    value !== null && typeof value === "object" && "socialId" in value ? value.socialId : undefined;
  if (typeof socialId !== "string") throw new ContractError("INVALID_SOCIAL_ID");
  return socialId;
}
