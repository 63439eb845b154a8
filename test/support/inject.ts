import { Request } from "@whatwg-node/fetch";
import type { Responder } from "../../src/http/server.ts";

/** Passes a request directly to an API, without a connection. */
export async function inject(
  { fetch, identifyClient }: Responder,
  path: string,
  {
    method = "GET",
    headers = {},
    body = "",
  }: { method?: string; headers?: Readonly<Record<string, string>>; body?: string } = {},
): Promise<{ status: number; headers: Headers; body: string }> {
  const response = await fetch(new Request(`http://localhost${path}`, { method, headers }), {
    path: path.replace(/\?.*/s, ""),
    client: identifyClient("127.0.0.1", headers["x-forwarded-for"]),
    readBody: () => Promise.resolve(Buffer.from(body)),
    disconnect: () => undefined,
  });
  return { status: response.status, headers: response.headers, body: await response.text() };
}
