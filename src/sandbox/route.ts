import type { z } from "zod";
import { respondJson, type ReadBody } from "../contract/http-messages.ts";
import { parseJsonBody } from "../contract/parse-json.ts";

/** What the sandbox's own routes need of a request. */
interface SandboxScope {
  readonly readBody: ReadBody;
  /** Whether it comes from this machine, and neither through a proxy nor of a page. */
  readonly isLocal: boolean;
}

const MAX_BODY_BYTES = 1024;

/**
 * A route that takes JSON of this schema; `expected` says which to callers that send something else.
 * Only a gateway with a sandbox has it.
 */
export function createRoute<Body>(
  schema: z.ZodType<Body>,
  expected: string,
  answer: (body: Body, scope: SandboxScope) => Response,
) {
  return {
    operation: "other" as const,
    async POST(_request: Request, scope: SandboxScope): Promise<Response> {
      const bytes = await scope.readBody(MAX_BODY_BYTES);
      const { data } = schema.safeParse(bytes === "too large" ? undefined : parseJsonBody(bytes));
      return data ? answer(data, scope) : refuse(400, expected);
    },
  };
}

/** The contract does not know these routes, and none of its error codes fits. */
export function refuse(status: number, message: string): Response {
  return respondJson(status, { error: "BAD_REQUEST", message });
}
