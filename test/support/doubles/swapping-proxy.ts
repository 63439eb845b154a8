import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

interface Held {
  readonly answer: string;
  readonly respond: (answer: string) => void;
}

/**
 * Starts a proxy of a JSON-RPC endpoint that can give two concurrent reads of accounts each other's
 * answer.
 */
export async function startSwappingProxy(target: string) {
  let isSwapping = false;
  let held: Held | undefined;

  async function pass(body: string, respond: (answer: string) => void): Promise<void> {
    const headers = { "content-type": "application/json" };
    const answer = await (await fetch(target, { method: "POST", headers, body })).text();
    if (!isSwapping || !body.includes('"getMultipleAccounts"')) respond(answer);
    else if (!held) held = { answer, respond };
    else {
      held.respond(answer);
      respond(held.answer);
      isSwapping = false;
      held = undefined;
    }
  }

  const server = createServer((request, response) => {
    void text(request).then((body) =>
      pass(body, (answer) =>
        response.writeHead(200, { "content-type": "application/json" }).end(answer),
      ),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Swaps the answers of the next two reads of accounts; the first waits for the second. */
    swapOnce(): void {
      isSwapping = true;
    },
    /** Whether a read of accounts waits for another. */
    isHolding: () => held !== undefined,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
