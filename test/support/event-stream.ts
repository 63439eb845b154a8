import { request, type IncomingMessage } from "node:http";

/** A response to a subscription, as a caller sees it. */
export interface EventStream {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  /** All received text. */
  readonly text: () => string;
  /** The parsed data of the received events `next`. */
  readonly events: () => any[];
  /** How the response ended; undefined while it is open. */
  readonly end: () => "complete" | "broken" | undefined;
  /** Stops reading. */
  readonly pause: () => void;
  readonly close: () => void;
}

/** Opens a subscription with POST, as a proxy would for a caller at `address`. */
export function openEventStream(
  url: string,
  body: { query: string; variables?: Record<string, unknown>; operationName?: string },
  {
    address = "192.0.2.1",
    headers = {},
  }: { address?: string; headers?: Record<string, string> } = {},
): Promise<EventStream> {
  const text = JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}/graphql`,
      {
        method: "POST",
        agent: false,
        headers: {
          accept: "text/event-stream",
          "content-type": "application/json",
          "content-length": Buffer.byteLength(text),
          "x-forwarded-for": address,
          ...headers,
        },
      },
      (response) => {
        let received = "";
        let end: "complete" | "broken" | undefined;
        response.setEncoding("utf8").on("data", (chunk: string) => (received += chunk));
        response.on("error", () => undefined);
        response.on("close", () => (end = response.complete ? "complete" : "broken"));
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          text: () => received,
          events: () =>
            [...received.matchAll(/^event: next\ndata: (.*)\n\n/gm)].map(([, data]) =>
              JSON.parse(data!),
            ),
          end: () => end,
          pause: () => response.pause(),
          close: () => sent.destroy(),
        });
      },
    );
    sent.on("error", reject).end(text);
  });
}
