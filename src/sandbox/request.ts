import { respondJson, type ReadBody } from "../contract/http-messages.ts";
import { parseJsonBody } from "../contract/parse-json.ts";

/** What a handler of the sandbox's own routes needs of a request. */
export interface SandboxScope {
  readonly readBody: ReadBody;
  /** Whether it comes from this machine, and neither through a proxy nor of a page. */
  readonly isLocal: boolean;
}

const MAX_BODY_BYTES = 1024;

/** The body's JSON; undefined if it is too large or no JSON. */
export async function readJson({ readBody }: Pick<SandboxScope, "readBody">): Promise<unknown> {
  const body = await readBody(MAX_BODY_BYTES);
  return body === "too large" ? undefined : parseJsonBody(body);
}

/** The contract does not know these routes, and none of its error codes fits. */
export function refuse(status: number, message: string): Response {
  return respondJson(status, { error: "BAD_REQUEST", message });
}
