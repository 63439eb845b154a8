import { z } from "zod";
import { ContractError, quote } from "../contract/contract-error.ts";
import { respondJson } from "../contract/http-messages.ts";
import { invalidSocialId, toSocialId } from "../contract/social-id.ts";
import { readJson, refuse, type SandboxScope } from "./request.ts";
import { FEE_SOURCES, MOST_LAMPORTS, type Trade } from "./trading.ts";

const Body = z.object({
  socialId: z.unknown().optional(),
  source: z.enum(FEE_SOURCES),
  lamports: z
    .union([z.int(), z.string().regex(/^\d{1,15}$/)])
    .transform(BigInt)
    .pipe(z.bigint().min(1n).max(MOST_LAMPORTS))
    .optional(),
});

const EXPECTED = `Send JSON such as {"socialId":"1523400000000000123","source":"VAULT"}; \`source\` is one of ${FEE_SOURCES.join(", ")}. \`lamports\`, which is optional, is a whole number from 1 to ${MOST_LAMPORTS}.`;

/**
 * `POST /sandbox/fees`: makes trades that earn fees for an account, of `lamports` or a random
 * amount. Only a gateway with a sandbox has this route.
 */
export function createFeesHandler(
  trade: Trade,
): (request: Request, scope: Pick<SandboxScope, "readBody">) => Promise<Response> {
  return async (_request, scope) => {
    const { data } = Body.safeParse(await readJson(scope));
    if (!data) return refuse(400, EXPECTED);
    const { socialId, source, lamports } = data;
    const id = typeof socialId === "string" ? toSocialId(socialId) : undefined;
    if (id === undefined) throw invalidSocialId(socialId);
    const earnings = trade(id, source, lamports);
    if (!earnings) {
      throw new ContractError("INVALID_SOCIAL_ID", {
        message: `The sandbox has no account with the id ${quote(id)}.`,
      });
    }
    return respondJson(200, { lamports: String(earnings.lamports), mint: earnings.mint });
  };
}
