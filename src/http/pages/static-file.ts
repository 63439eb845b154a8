import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip, gzipSync } from "node:zlib";
import type { Handler } from "../router.ts";

export interface StaticFile {
  /** A hash of the content. The response at a URL with `?v=<version>` never changes. */
  readonly version: string;
  readonly handle: Handler;
}

const CHUNK_BYTES = 65_536;

/**
 * Serves a file from memory, compressed on the first request that accepts gzip. At a URL with its version, caches may
 * keep the file forever; at any other they must revalidate it.
 */
export function createStaticFile(
  content: string | Buffer<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
): StaticFile {
  const plain = typeof content === "string" ? Buffer.from(content) : content;
  const version = createHash("sha256").update(plain).digest("base64url").slice(0, 16);
  const etag = `W/"${version}"`;
  const matchesEtag = (tags: string | null) => tags?.trim() === "*" || tags?.includes(`"${version}"`);
  let compressed: Buffer<ArrayBuffer> | Promise<Buffer<ArrayBuffer>> | undefined;

  return {
    version,
    async handle(request, _scope, url) {
      const common = {
        "cache-control":
          url.searchParams.get("v") === version ? "public, max-age=31536000, immutable" : "no-cache",
        etag,
        vary: "Accept-Encoding",
        "referrer-policy": "no-referrer",
        ...headers,
      };
      if (matchesEtag(request.headers.get("if-none-match"))) {
        return new Response(null, { status: 304, headers: common });
      }
      if (!acceptsGzip(request)) return respond(plain, common);
      // For a page, another thread costs more than the compression.
      compressed ??= plain.length > CHUNK_BYTES ? promisify(gzip)(plain) : gzipSync(plain);
      return respond(await compressed, { ...common, "content-encoding": "gzip" });
    },
  };
}

function respond(body: Buffer<ArrayBuffer>, headers: Record<string, string>): Response {
  return new Response(toStream(body), { headers: { ...headers, "content-length": String(body.length) } });
}

/** Sends a body in chunks, as fast as the caller reads. As one chunk, each unread response would hold a copy of it. */
function toStream(body: Buffer<ArrayBuffer>): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      controller.enqueue(body.subarray(at, at + CHUNK_BYTES));
      at += CHUNK_BYTES;
      if (at >= body.length) controller.close();
    },
  });
}

function acceptsGzip({ headers }: Request): boolean {
  return /\bgzip\b(?! *; *q=0(\.0*)? *(,|$))/i.test(headers.get("accept-encoding") ?? "");
}
