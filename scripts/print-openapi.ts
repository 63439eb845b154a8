/** Writes the OpenAPI document to openapi.json: `npm run schema`. */
import { writeFileSync } from "node:fs";
import { handleFormat } from "../src/contract/handle.ts";
import { rateLimited } from "../src/http/rate-limit/rate-limit.ts";
import { createOpenApiDocument, withServer } from "../src/rest/openapi.ts";

const rateLimit = { max: 20, windowSeconds: 60 };

/** The document that a service with the default settings serves to this machine. */
export const DEFAULT_DOCUMENT = withServer(
  createOpenApiDocument({
    basePath: "",
    isOpenToAllPages: true,
    collectTimeoutMs: 50_000,
    handleFormat: handleFormat(false),
    rateLimit,
    rateLimited: rateLimited(rateLimit, rateLimit.windowSeconds),
  }),
  "http://localhost:4000",
);

if (import.meta.main) {
  const text = JSON.stringify(DEFAULT_DOCUMENT, null, 2);
  writeFileSync(new URL("../openapi.json", import.meta.url), `${text}\n`);
}
