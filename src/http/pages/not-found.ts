import { ContractError } from "../../contract/contract-error.ts";
import { answerError, JSON_TYPE, type Answer, type HttpRequest } from "../../contract/http-messages.ts";
import { preferredType } from "../../graphql/media-types.ts";

const HTML = "text/html; charset=utf-8";

/** Answers requests to unknown paths: browsers get the page `html`, and all others NOT_FOUND. */
export function createNotFound(
  html: string,
  headers: Readonly<Record<string, string>>,
): (request: HttpRequest) => Answer {
  return ({ method, headers: received }) => {
    const type = preferredType(received.accept, [JSON_TYPE, HTML]);
    const error = answerError(new ContractError("NOT_FOUND"));
    if (method === "GET" && type === HTML) return { status: error.status, headers, body: html };
    return { ...error, headers: { ...error.headers, vary: "Accept" } };
  };
}
