import { z } from "zod";
import { ContractError, quote } from "../contract/contract-error.ts";
import { answerJson } from "../contract/http-messages.ts";
import { invalidSocialId, toSocialId } from "../contract/social-id.ts";
import { BAD_REQUEST } from "../graphql/errors.ts";
import { isJson } from "../graphql/media-types.ts";
import { parseJson } from "../contract/parse-json.ts";
import type { Handler } from "./router.ts";

const SOURCES = ["VAULT", "CURVE", "POOL", "SHARED"] as const;
const Body = z.object({ socialId: z.unknown().optional(), source: z.enum(SOURCES) });

/** Makes trades in the sandbox. Returns undefined if no account of the sandbox has the id. */
export type SandboxTrade = (
  socialId: string,
  source: (typeof SOURCES)[number],
) => { readonly lamports: bigint; readonly mint: string | null } | undefined;

const MAX_BODY_BYTES = 1024;
const EXPECTED = `Send JSON such as {"socialId":"1523400000000000123","source":"VAULT"}, with Content-Type: application/json; \`source\` is one of ${SOURCES.join(", ")}.`;

/** `POST /sandbox/fees`: makes trades that earn fees for an account. Only a gateway with a sandbox has this route. */
export function createSandboxFeesHandler(trade: SandboxTrade): Handler {
  return async (request, scope) => {
    const body = await request.readBody(MAX_BODY_BYTES);
    const isRead = body !== "too large" && isJson(request.headers["content-type"]);
    const { data } = Body.safeParse(isRead ? parseJson(new TextDecoder().decode(body)) : undefined);
    if (!data) {
      // No error code of the contract fits, and the contract does not know this route.
      scope.recordCode(BAD_REQUEST);
      return answerJson(400, { error: BAD_REQUEST, message: EXPECTED });
    }
    const { socialId, source } = data;
    const id = typeof socialId === "string" ? toSocialId(socialId) : undefined;
    if (id === undefined) throw invalidSocialId(socialId);
    const earned = trade(id, source);
    if (!earned) {
      throw new ContractError("INVALID_SOCIAL_ID", {
        message: `The sandbox has no account with the id ${quote(id)}.`,
      });
    }
    return answerJson(200, { lamports: String(earned.lamports), mint: earned.mint });
  };
}
