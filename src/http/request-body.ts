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
  if (Number(request.headers["content-length"]) > maxBytes) return Promise.resolve("too large");
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const receive = (piece: Buffer) => {
      bytes += piece.length;
      if (bytes <= maxBytes && pieces.push(piece) <= MAX_BODY_PIECES) return;
      // Discards the rest.
      request.off("data", receive).resume();
      resolve("too large");
    };
    const fail = () => {
      reject(new Error("the caller disconnected before it sent the whole body"));
    };
    if (request.destroyed) fail();
    request.on("data", receive).once("close", fail);
    request.once("end", () => {
      resolve(Buffer.concat(pieces));
    });
  });
}
