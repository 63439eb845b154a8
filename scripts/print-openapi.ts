import { handleFormat } from "../src/contract/handle.ts";
import { createOpenApiDocument, withServer } from "../src/http/pages/openapi.ts";

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
