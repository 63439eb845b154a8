import { from } from "./client.ts";

/** A request that a client sent, and how the gateway answered. */
interface Exchange {
  readonly method: string;
  /** The parsed body; undefined without one. */
  readonly sent: any;
  readonly accept: string;
  readonly status: number;
  /** The media type of the response. */
  readonly type: string;
}

/**
 * A `fetch` for clients that records what they exchange with the gateway, from the address of the
 * caller.
 */
export function recordFetch(address: string) {
  const exchanges: Exchange[] = [];
  return {
    exchanges,
    async fetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
      const request = new Request(input, init);
      for (const [name, value] of Object.entries(from(address))) request.headers.set(name, value);
      const body = await request.clone().text();
      const response = await fetch(request);
      exchanges.push({
        method: request.method,
        sent: body ? JSON.parse(body) : undefined,
        accept: request.headers.get("accept") ?? "",
        status: response.status,
        type: response.headers.get("content-type") ?? "",
      });
      return response;
    },
  };
}
