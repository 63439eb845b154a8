import type { IncomingMessage } from "node:http";
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
    const close = () => {
      if (!request.readableEnded) reject(new DOMException("The caller disconnected", "AbortError"));
    };
    if (request.destroyed) close();
    request
      .once("close", close)
      .once("end", () => {
        resolve(Buffer.concat(pieces));
      })
      .on("data", (piece: Buffer) => {
        bytes += piece.length;
        // The rest is discarded.
        if (bytes > maxBytes || pieces.length === MAX_BODY_PIECES) resolve("too large");
        else pieces.push(piece);
      });
  });
}
