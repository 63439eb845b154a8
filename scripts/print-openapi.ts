/** Writes the OpenAPI document to openapi.json: `npm run schema`. */
import { writeFileSync } from "node:fs";
import { handleFormat } from "../src/contract/handle.ts";
import { createOpenApiDocument, withServer } from "../src/rest/openapi.ts";

/** The document that a service with the default settings serves to this machine. */
export const DEFAULT_DOCUMENT = withServer(
  createOpenApiDocument({
    basePath: "",
    isOpenToAllPages: true,
    collectTimeoutMs: 50_000,
    handleFormat: handleFormat(false),
    rateLimitMax: 20,
  }),
  "http://localhost:4000",
);

if (import.meta.main) {
  const text = JSON.stringify(DEFAULT_DOCUMENT, null, 2);
  writeFileSync(new URL("../openapi.json", import.meta.url), `${text}\n`);
}
