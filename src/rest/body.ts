/** Reads and discards at most this much of a body that is too large, so that the sender sees the response. */
const MAX_DISCARDED_BYTES = 1_000_000;

/**
 * Reads a request's body and keeps at most `maxBytes` of it, whatever `Content-Length` says. Rejects when the
 * sender disconnects.
 */
export async function readBody(request: Request, maxBytes: number): Promise<Uint8Array | "too large"> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Not `for await`: leaving it early cancels the body, and that closes the connection.
  const reader = (request.body as ReadableStream<Uint8Array> | null)?.getReader();
  while (reader && size <= MAX_DISCARDED_BYTES) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size <= maxBytes) chunks.push(value);
  }
  return size > maxBytes ? "too large" : Buffer.concat(chunks);
}
