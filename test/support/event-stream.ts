export type EventStream = Awaited<ReturnType<typeof openEventStream>>;

/** Opens a subscription with POST, as a proxy would for a caller at `address`. */
export async function openEventStream(
  url: string,
  body: { query: string; variables?: Record<string, unknown>; operationName?: string },
  {
    address = "192.0.2.1",
    headers = {},
  }: { address?: string; headers?: Record<string, string> } = {},
) {
  const leaving = new AbortController();
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    signal: leaving.signal,
    headers: {
      accept: "text/event-stream",
      "content-type": "application/json",
      "x-forwarded-for": address,
      ...headers,
    },
    body: JSON.stringify(body),
  });
  let received = "";
  let end: "complete" | "broken" | undefined;
  async function read(): Promise<void> {
    const texts = response.body!.pipeThrough(new TextDecoderStream());
    for await (const text of texts) received += text;
    end = "complete";
  }
  void read().catch(() => (end = "broken"));
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers) as Readonly<Record<string, string | undefined>>,
    /** All received text. */
    text: () => received,
    /** The parsed data of the received events `next`. */
    events: (): any[] =>
      [...received.matchAll(/^event: next\ndata: (.*)\n\n/gm)].map(([, data]) => JSON.parse(data!)),
    /** How the response ended; undefined while it is open. */
    end: () => end,
    close: () => {
      leaving.abort();
    },
  };
}
