import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip, gzipSync } from "node:zlib";
import type { Handler } from "../router.ts";

export interface StaticFile {
  /** A hash of the content. The response at a URL with `?v=<version>` never changes. */
  readonly version: string;
  readonly handle: Handler;
}

/** Compressing a larger file takes longer than passing it to another thread. */
const MAX_BYTES_IN_THREAD = 65_536;

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
  const matchesEtag = (tags: string | undefined) =>
    tags?.trim() === "*" || tags?.includes(`"${version}"`);
  let compressedBytes: Buffer<ArrayBuffer> | Promise<Buffer<ArrayBuffer>> | undefined;

  return {
    version,
    async handle({ headers: requestHeaders, query }) {
      const isVersioned = new URLSearchParams(query).get("v") === version;
      const common = {
        "cache-control": isVersioned ? "public, max-age=31536000, immutable" : "no-cache",
        etag,
        vary: "Accept-Encoding",
        "referrer-policy": "no-referrer",
        ...headers,
      };
      if (matchesEtag(requestHeaders["if-none-match"])) return { status: 304, headers: common };
      if (!isKept || !acceptsGzip(requestHeaders["accept-encoding"]))
        return { status: 200, headers: common, body: plain };
      compressedBytes ??=
        plain.length > MAX_BYTES_IN_THREAD ? promisify(gzip)(plain) : gzipSync(plain);
      return {
        status: 200,
        headers: { ...common, "content-encoding": "gzip" },
        body: await compressedBytes,
      };
    },
  };
}

function acceptsGzip(acceptedEncodings = ""): boolean {
  return /\bgzip\b(?! *; *q=0(\.0*)? *(,|$))/i.test(acceptedEncodings);
}
