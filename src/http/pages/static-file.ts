import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Handler } from "../router.ts";

export interface StaticFile {
  /** Of the content: `?v=<version>` makes a URL whose answer never changes. */
  readonly version: string;
  readonly handle: Handler;
}

const PIECE_BYTES = 65_536;

/**
 * A file that is kept in memory, as it is and, once asked for, compressed. It may be kept for good by who
 * asked for its version, and is asked about each time by everyone else.
 */
export function createStaticFile(
  content: string | Buffer<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
): StaticFile {
  const plain = typeof content === "string" ? Buffer.from(content) : content;
  const version = createHash("sha256").update(plain).digest("base64url").slice(0, 16);
  const etag = `W/"${version}"`;
  const isKnown = (tags: string | null) => tags?.trim() === "*" || tags?.includes(`"${version}"`);
  let compressed: Promise<Buffer<ArrayBuffer>> | undefined;

  return {
    version,
    async handle(request, _call, url) {
      const common = {
        "cache-control":
          url.searchParams.get("v") === version ? "public, max-age=31536000, immutable" : "no-cache",
        etag,
        vary: "Accept-Encoding",
        "referrer-policy": "no-referrer",
        ...headers,
      };
      if (isKnown(request.headers.get("if-none-match"))) {
        return new Response(null, { status: 304, headers: common });
      }
      if (!takesGzip(request)) return respond(plain, common);
      compressed ??= promisify(gzip)(plain);
      return respond(await compressed, { ...common, "content-encoding": "gzip" });
    },
  };
}

function respond(body: Buffer<ArrayBuffer>, headers: Record<string, string>): Response {
  return new Response(inPieces(body), { headers: { ...headers, "content-length": String(body.length) } });
}

/** Read piece by piece, as its caller reads: of a body in one piece each answer that nobody reads would hold a copy. */
function inPieces(body: Buffer<ArrayBuffer>): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      controller.enqueue(body.subarray(at, at + PIECE_BYTES));
      at += PIECE_BYTES;
      if (at >= body.length) controller.close();
    },
  });
}

function takesGzip({ headers }: Request): boolean {
  return /\bgzip\b(?! *; *q=0(\.0*)? *(,|$))/i.test(headers.get("accept-encoding") ?? "");
}
