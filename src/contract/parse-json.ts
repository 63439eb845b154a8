import { isUtf8 } from "node:buffer";

/** Parses a JSON text. Returns undefined if it is invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses a body of JSON in UTF-8. Returns undefined if it is invalid. */
export function parseJsonBody(body: Buffer): unknown {
  return isUtf8(body) ? parseJson(new TextDecoder().decode(body)) : undefined;
}

/** Whether a value is an object and no array: any member may be read. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const CODINGS = ["gzip", "x-gzip", "deflate", "br", "zstd"];

/** What a body is that is no text in UTF-8, for a message; undefined if it is. */
export function encodingOf(body: Buffer, contentEncoding = ""): string | undefined {
  const isGzip = body[0] === 0x1f && body[1] === 0x8b;
  const coding = isGzip ? "gzip" : contentEncoding.trim().toLowerCase();
  if (CODINGS.includes(coding)) return `a compressed body (${coding})`;
  if (isUtf16(body)) return "a body in UTF-16";
  return isUtf8(body) ? undefined : "bytes that are not UTF-8";
}

/** Whether a text begins with a byte order mark, or with an ASCII character in two bytes. */
function isUtf16(body: Buffer): boolean {
  const start = body.toString("hex", 0, 2);
  return ["fffe", "feff"].includes(start) || /^(00(?!00)|(?!00)..00)/.test(start);
}
