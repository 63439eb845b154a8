import { isIPv4, isIPv6 } from "node:net";
import { answerJson, JSON_TYPE } from "../../contract/http-messages.ts";
import { withServer, type OpenApiDocument } from "../../rest/openapi.ts";
import type { Handler } from "../router.ts";
import { createStaticFile } from "./static-file.ts";

/**
 * Serves the OpenAPI document. Many tools that import it need the service's whole URL in `servers`:
 * `publicUrl`, or else the URL of the request if its host is this machine's name or an address. Any
 * other name may have been invented by the caller, and TLS may end at a proxy: the URL is relative.
 */
export function createOpenApiFile(
  document: OpenApiDocument,
  { basePath, publicUrl }: { basePath: string; publicUrl?: URL | undefined },
): Handler {
  const servedDocument = publicUrl
    ? withServer(document, publicUrl.href.replace(/\/$/, ""))
    : document;
  const file = createStaticFile(JSON.stringify(servedDocument), { "content-type": JSON_TYPE });
  return (request, scope) => {
    const { host = "" } = request.headers;
    if (publicUrl || !isLocal(host)) return file.handle(request, scope);
    // Neither compressed nor cached: a caller can send a new host each time.
    const answer = answerJson(200, withServer(document, `http://${host}${basePath}`));
    return { ...answer, headers: { ...answer.headers, "cache-control": "no-cache" } };
  };
}

/** Whether a `Host` header is `localhost` or an IP address, with or without a port. */
function isLocal(host: string): boolean {
  const [, ipv6 = "", name = ""] = /^(?:\[([^%]+)\]|([^:]+))(?::\d{1,5})?$/.exec(host) ?? [];
  return isIPv6(ipv6) || isIPv4(name) || name.toLowerCase() === "localhost";
}
