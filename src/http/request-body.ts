import type { IncomingMessage } from "node:http";
import { MAX_BODY_PIECES } from "../contract/http-messages.ts";

/** More costs the service more than a new connection costs the caller. */
const MAX_DISCARDED_BYTES = 1024 * 1024;

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

/**
 * Receives the rest of a body that is already answered, so that the caller can use its connection
 * again; but none of unknown length, and no long one, which Node would receive for as long as its
 * caller sends.
 */
export function discardBody(request: IncomingMessage): void {
  if (request.headers["content-length"] === undefined) {
    // Node then takes it for read.
    request.pause().read(0);
    return;
  }
  let [pieces, bytes] = [0, 0];
  request.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (++pieces > MAX_BODY_PIECES || bytes > MAX_DISCARDED_BYTES) request.pause();
  });
}
