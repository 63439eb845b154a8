import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { Writable } from "node:stream";
import type { HandleNode } from "../../src/http/router.ts";

/**
 * Passes a request directly to a handler, without a connection. Requests of one turn arrive in that
 * turn.
 */
export async function inject(
  handle: HandleNode,
  path: string,
  {
    method = "GET",
    headers = {},
    body = "",
  }: { method?: string; headers?: Readonly<Record<string, string>>; body?: string } = {},
): Promise<{ status: number; headers: Headers; body: string }> {
  const request = Object.assign(new IncomingMessage(new Socket()), {
    method,
    url: path,
    headers: { ...headers, "content-length": String(Buffer.byteLength(body)) },
    complete: true,
  });
  if (body) request.push(body);
  request.push(null);
  const response = new ServerResponse(request);
  let received = "";
  const output = new Writable({
    write: (bytes: Buffer, _encoding, done) => {
      received += bytes.toString();
      done();
    },
  });
  response.assignSocket(output as unknown as Socket);
  const { signal } = new AbortController();
  await handle(request, response, {
    remoteAddress: "127.0.0.1",
    signal,
    disconnect: () => undefined,
  });
  const [head, ...rest] = received.split("\r\n\r\n");
  const [line, ...lines] = head!.split("\r\n");
  return {
    status: Number(line!.split(" ")[1]),
    headers: new Headers(lines.map((each) => each.split(": ", 2) as [string, string])),
    body: rest.join("\r\n\r\n"),
  };
}
