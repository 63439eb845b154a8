/**
 * Reads a request's body, and stops when it has more than `maxBytes`; before reading, if `Content-Length` says so.
 * Rejects when the sender disconnects.
 */
export async function readBody(request: Request, maxBytes: number): Promise<Uint8Array | "too large"> {
  if (Number(request.headers.get("content-length")) > maxBytes) return "too large";
  const chunks: Uint8Array[] = [];
  let size = 0;
  // Not `for await`: leaving it early cancels the body, and that closes the connection.
  const reader = (request.body as ReadableStream<Uint8Array> | null)?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > maxBytes) return "too large";
    chunks.push(value);
  }
  return Buffer.concat(chunks);
}
