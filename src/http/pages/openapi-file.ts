import { isIPv4, isIPv6 } from "node:net";
import { JSON_TYPE } from "../../contract/http-messages.ts";
import { withServer, type OpenApiDocument } from "./openapi.ts";
import type { Handler } from "../router.ts";
import { createStaticFile, type StaticFile } from "./static-file.ts";

/** For this many hosts, the compressed document is kept: a caller can send a new host each time. */
const MAX_KEPT_HOSTS = 16;

/**
 * Serves the OpenAPI document. Many tools that import it need the service's whole URL in `servers`:
 * `publicUrl`, or else the URL of the request if its host is this machine's name or an address. Any
 * other name may have been invented by the caller, and TLS may end at a proxy: the URL is relative.
 */
export function createOpenApiFile(
  document: OpenApiDocument,
  { basePath, publicUrl }: { basePath: string; publicUrl?: URL | undefined },
): Handler {
  const toFile = (served: OpenApiDocument, isKept = true) =>
    createStaticFile(JSON.stringify(served), { "content-type": JSON_TYPE }, { isKept });
  const file = toFile(
    publicUrl ? withServer(document, publicUrl.href.replace(/\/$/, "")) : document,
  );
  const keptFiles = new Map<string, StaticFile>();

  function fileFor(host: string): StaticFile {
    const keptFile = keptFiles.get(host);
    if (keptFile) return keptFile;
    const isKept = keptFiles.size < MAX_KEPT_HOSTS;
    const newFile = toFile(withServer(document, `http://${host}${basePath}`), isKept);
    if (isKept) keptFiles.set(host, newFile);
    return newFile;
  }

  return (request, scope) => {
    const host = request.headers.get("host") ?? "";
    const served = publicUrl || !isLocal(host) ? file : fileFor(host);
    return served.handle(request, scope);
  };
}

/** Whether a `Host` header is `localhost` or an IP address, with or without a port. */
function isLocal(host: string): boolean {
  const [, ipv6 = "", name = ""] = /^(?:\[([^%]+)\]|([^:]+))(?::\d{1,5})?$/.exec(host) ?? [];
  return isIPv6(ipv6) || isIPv4(name) || name.toLowerCase() === "localhost";
}
