import type { IncomingMessage } from "node:http";
import { finished } from "node:stream";
import { MAX_BODY_PIECES } from "../contract/http-messages.ts";

/**
 * Reads a body, unless it has more than `maxBytes` or arrives in too many pieces. Rejects when the
 * caller disconnects before all has arrived.
 */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Buffer | "too large"> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers["content-length"]) > maxBytes) resolve("too large");
    const pieces: Buffer[] = [];
    let bytes = 0;
    finished(request, (error) => {
      if (error) reject(new DOMException("The caller disconnected", "AbortError"));
      else resolve(Buffer.concat(pieces));
    });
    request.on("data", (piece: Buffer) => {
      bytes += piece.length;
      // The rest is discarded.
      if (bytes > maxBytes || pieces.length === MAX_BODY_PIECES) resolve("too large");
      else pieces.push(piece);
    });
  });
}
