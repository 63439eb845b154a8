import { ContractError } from "../../contract/contract-error.ts";
import { preferredType } from "../../graphql/media-types.ts";
import { JSON_HEADERS, respondError } from "../../rest/respond.ts";

const HTML = "text/html; charset=utf-8";

/** Answers requests to unknown paths: browsers get the page `html`, and all others NOT_FOUND. */
export function createNotFound(
  html: string,
  headers: Readonly<Record<string, string>>,
): (request: Request) => Response {
  return ({ method, headers: received }) => {
    const isRead = method === "GET" || method === "HEAD";
    const type = preferredType(received.get("accept"), [JSON_HEADERS["content-type"], HTML]);
    const error = new ContractError("NOT_FOUND");
    if (!isRead || type !== HTML) return respondError(error, { headers: { vary: "Accept" } });
    return new Response(method === "HEAD" ? null : html, { status: error.status, headers });
  };
}
