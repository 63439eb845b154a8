import type { createGraphQLEndpoint } from "../graphql/graphql-endpoint.ts";
import { badRequest } from "../graphql/errors.ts";
import { BODY_TOO_LARGE, MAX_BODY_BYTES } from "../graphql/params.ts";
import type { Handler } from "./router.ts";

/** Passes requests to the GraphQL endpoint at `path`. */
export function createGraphQLHandler(
  { answer, fetchAPI }: ReturnType<typeof createGraphQLEndpoint>,
  path: string,
): Handler {
  return async ({ method, headers, query, readBody }, scope) => {
    const body = method === "POST" ? await readBody(MAX_BODY_BYTES) : undefined;
    const request = new fetchAPI.Request(`http://localhost${path}?${query}`, {
      method,
      headers: headers as Record<string, string>,
      ...(body instanceof Buffer && { body: new Uint8Array(body) }),
    });
    if (body === "too large")
      request.arrayBuffer = () => Promise.reject(badRequest(BODY_TOO_LARGE, { status: 413 }));
    const response = await answer(request, scope);
    return {
      status: response.status,
      headers: Object.fromEntries(
        [...response.headers].map(([name, value]) => [name.toLowerCase(), value]),
      ),
      body: response.body instanceof ReadableStream ? response.body : await response.text(),
    };
  };
}
