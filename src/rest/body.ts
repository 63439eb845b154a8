/** What is read of a body that is too large, so that its sender gets to see the answer, before it is left. */
const MAX_DISCARDED_BYTES = 1_000_000;

/**
 * Reads a request's body, but never keeps more than `maxBytes` of it, whatever `Content-Length` announces.
 * Rejects when the sender breaks off.
 */
export async function readBody(request: Request, maxBytes: number): Promise<Uint8Array | "too large"> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  // A reader, because leaving a `for await` early cancels the body, which closes the connection unanswered.
  const reader = (request.body as ReadableStream<Uint8Array> | null)?.getReader();
  while (reader && size <= MAX_DISCARDED_BYTES) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size <= maxBytes) chunks.push(value);
  }
  return size > maxBytes ? "too large" : Buffer.concat(chunks);
}
