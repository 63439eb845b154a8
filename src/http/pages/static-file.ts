import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip, gzipSync } from "node:zlib";
import { Response } from "@whatwg-node/fetch";
import type { RequestScope } from "../../resolvers/request-scope.ts";

export interface StaticFile {
  /** A hash of the content. The response at a URL with `?v=<version>` never changes. */
  readonly version: string;
  readonly handle: (request: Request, scope: RequestScope) => Promise<Response>;
}

/** Compressing a larger file takes longer than passing it to another thread. */
const MAX_BYTES_IN_THREAD = 65_536;
/**
 * A longer body, such as GraphiQL's script, costs the caller one more request: sending it costs
 * more than a lookup.
 */
const MAX_UNCOUNTED_BYTES = 400_000;

/**
 * Serves a file from memory. Caches may keep it forever if the URL has its version; else they must
 * revalidate it. Only a file that is kept for many requests should be compressed.
 */
export function createStaticFile(
  content: string | Buffer<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
  { isKept = true } = {},
): StaticFile {
  const plain = typeof content === "string" ? Buffer.from(content) : content;
  const version = createHash("sha256").update(plain).digest("base64url").slice(0, 16);
  const etag = `W/"${version}"`;
  const matchesEtag = (tags: string | null) =>
    tags?.trim() === "*" || tags?.includes(`"${version}"`);
  let compressedBytes: Buffer<ArrayBuffer> | Promise<Buffer<ArrayBuffer>> | undefined;

  return {
    version,
    async handle(request, scope) {
      const { headers: requestHeaders, method, url } = request;
      const isVersioned = new URL(url).searchParams.get("v") === version;
      const common: Record<string, string> = {
        "cache-control": isVersioned ? "public, max-age=31536000, immutable" : "no-cache",
        etag,
        vary: "Accept-Encoding",
        "referrer-policy": "no-referrer",
        ...headers,
      };
      if (matchesEtag(requestHeaders.get("if-none-match")))
        return new Response(null, { status: 304, headers: common });
      let body = plain;
      if (isKept && acceptsGzip(requestHeaders.get("accept-encoding"))) {
        compressedBytes ??=
          plain.length > MAX_BYTES_IN_THREAD ? promisify(gzip)(plain) : gzipSync(plain);
        body = await compressedBytes;
        common["content-encoding"] = "gzip";
      }
      if (body.length > MAX_UNCOUNTED_BYTES && method !== "HEAD") await scope.admit(1);
      return new Response(body, { headers: common });
    },
  };
}

function acceptsGzip(acceptedEncodings: string | null): boolean {
  return /\bgzip\b(?! *; *q=0(\.0*)? *(,|$))/i.test(acceptedEncodings ?? "");
}
