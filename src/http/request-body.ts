import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * A body of at most this length is read to its end even if no handler reads it, so that the
 * connection stays open.
 */
const MAX_DRAINED_BYTES = 16_384;
/**
 * A piece is a chunk, or what one read of the socket returns. A body of 100 kB has 69 TCP segments.
 */
export const MAX_PIECES = 256;

/**
 * How much a closing connection discards. Reads are limited too, because short reads cost as much
 * as long ones.
 */
const MAX_DISCARDED_BYTES = 65_536;
const MAX_DISCARDED_READS = 64;
const LINGER_MS = 500;

/**
 * Bounds the cost of a body that no handler reads: Node would receive it for as long as the caller
 * sends. If a long body has not ended when the response ends, the connection closes. Calls `refuse`
 * for a body in too many pieces.
 */
export function boundBody(
  request: IncomingMessage,
  response: ServerResponse,
  refuse: () => void,
): void {
  const { headers, socket } = request;
  if (headers["content-length"] === undefined && headers["transfer-encoding"] === undefined) return;
  const length = Number(headers["content-length"] ?? Infinity);

  if (length > MAX_DRAINED_BYTES) {
    const { shouldKeepAlive } = response;
    response.shouldKeepAlive = false;
    request.once("end", () => (response.shouldKeepAlive = shouldKeepAlive));
  }
  response.once("prefinish", () => {
    if (request.complete) return;
    // Node calls this if it has to close the connection.
    socket.destroySoon = () => {
      linger(socket);
    };
    if (length <= MAX_DRAINED_BYTES) request.resume();
  });

  if (length <= MAX_PIECES) return;
  let pieces = 0;
  // Node calls this for each piece that arrives. A listener for `data` would start to read.
  const push = request.push.bind(request);
  request.push = (piece: Buffer | null) => {
    if (piece === null || ++pieces <= MAX_PIECES) return push(piece);
    if (pieces === MAX_PIECES + 1) refuse();
    return true;
  };
}

/**
 * Reads a body, unless it has more than `maxBytes`. Rejects when the caller disconnects before all
 * has arrived.
 */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Buffer | "too large"> {
  const length = request.headers["content-length"];
  if (Number(length) > maxBytes) return Promise.resolve("too large");
  if (length === undefined && request.headers["transfer-encoding"] === undefined)
    return Promise.resolve(Buffer.alloc(0));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const receive = (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else {
        request.off("data", receive).pause();
        resolve("too large");
      }
    };
    const close = () => {
      const chunk = chunks[0];
      if (request.complete) resolve(chunk && chunks.length === 1 ? chunk : Buffer.concat(chunks));
      else reject(new Error("the caller disconnected before it sent the whole body"));
    };
    if (request.destroyed) close();
    // `close` is emitted after the whole body, and when the caller disconnects.
    else request.once("close", close).on("data", receive);
  });
}

/** Ends the service's side of a connection, and soon closes the connection. */
export function linger(socket: Socket): void {
  socket.end();
  discardInput(socket);
}

/**
 * Discards input, and closes soon. Closing at once could reset the connection and lose the
 * response.
 */
export function discardInput(socket: Socket): void {
  let bytes = 0;
  let reads = 0;
  socket
    .removeAllListeners("data")
    .on("data", (data: Buffer) => {
      bytes += data.length;
      if (++reads === MAX_DISCARDED_READS) socket.destroy();
      else if (bytes >= MAX_DISCARDED_BYTES) socket.pause();
    })
    .resume();
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => {
    clearTimeout(timer);
  });
}
