import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface JsonAnswer {
  readonly status?: number;
  readonly body: unknown;
}

/** A minimal JSON server on a free loopback port, independent of the sandbox's code. */
export async function startJsonServer(
  answer: (request: { url: URL; authorization: string | undefined; body: string }) => JsonAnswer,
) {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const url = new URL(request.url ?? "/", "http://double");
      const body = Buffer.concat(chunks).toString();
      const answered = answer({ url, authorization: request.headers.authorization, body });
      response.writeHead(answered.status ?? 200, { "content-type": "application/json" });
      response.end(JSON.stringify(answered.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
