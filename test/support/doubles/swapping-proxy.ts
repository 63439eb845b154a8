import { createLoopbackServer, type LoopbackAnswer } from "../../../src/sandbox/loopback-server.ts";

/**
 * Starts a proxy of a JSON-RPC endpoint that can give two concurrent reads of accounts each other's
 * answer.
 */
export async function startSwappingProxy(target: string) {
  let isSwapping = false;
  let held: { answer: LoopbackAnswer; respond: (answer: LoopbackAnswer) => void } | undefined;

  const { url, close } = await createLoopbackServer({
    port: 0,
    async handle({ body }) {
      const headers = { "content-type": "application/json" };
      const response = await fetch(target, { method: "POST", headers, body });
      const answer = { status: 200, headers, body: await response.text() };
      if (!isSwapping || !body.includes('"getMultipleAccounts"')) return answer;
      if (!held) return new Promise((respond) => (held = { answer, respond }));
      const other = held;
      held = undefined;
      isSwapping = false;
      other.respond(answer);
      return other.answer;
    },
  });
  return {
    ...{ url, close },
    /** Swaps the answers of the next two reads of accounts; the first waits for the second. */
    swapOnce(): void {
      isSwapping = true;
    },
    /** Whether a read of accounts waits for another. */
    isHolding: () => held !== undefined,
  };
}
