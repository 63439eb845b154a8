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
