import { once } from "node:events";
import { connect } from "node:net";
import { Agent, request } from "undici";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";

/** A gateway that requests are sent to, while the CPU time of its process is measured. */
export interface Target {
  readonly url: string;
  /** The chain that the gateway uses. */
  readonly sandbox: Pick<Sandbox, "chain" | "rpc">;
  /**
   * Sends a request on a connection that stays open, as a new caller unless the headers name one; with `json` by POST.
   * Returns the status.
   */
  send(path: string, headers?: Record<string, string>, json?: object): Promise<number>;
  /**
   * Writes the head of a request on a new connection, then the pieces of its body, if `apart` each in a packet of its
   * own. Resolves when the gateway has ended the connection, with what it sent.
   */
  flood(head: string, pieces: Iterable<string>, options?: { apart?: boolean }): Promise<string>;
  /** The CPU time of the gateway's process so far, in ms. */
  cpuMs(): Promise<number>;
  close(): Promise<void>;
}

let callers = 0;
/** Another client address for each request, as a proxy would name it. */
export const nextCaller = () => `10.${(callers >> 16) & 255}.${(callers >> 8) & 255}.${callers++ & 255}`;

/** The gateway at `url` must trust this machine as a proxy, and serve `/metrics`. */
export function createTarget(url: string, sandbox: Target["sandbox"]): Target {
  const { hostname, port } = new URL(url);
  const dispatcher = new Agent({ connections: 1, pipelining: 1 });

  return {
    url,
    sandbox,

    async send(path, headers, json) {
      const { statusCode, body } = await request(url + path, {
        dispatcher,
        headers: { "x-forwarded-for": nextCaller(), "content-type": "application/json", ...headers },
        ...(json && { method: "POST", body: JSON.stringify(json) }),
      });
      await body.arrayBuffer();
      return statusCode;
    },

    async flood(head, pieces, { apart = false } = {}) {
      // Keeps sending after the gateway has ended its side.
      const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
      let received = "";
      socket
        .on("data", (bytes: Buffer) => (received += bytes.toString("latin1")))
        .on("error", () => undefined);
      const closed = new Promise((resolve) => socket.once("close", resolve));
      const ended = Promise.race([closed, new Promise((resolve) => socket.once("end", resolve))]);
      await once(socket, "connect");
      socket.write(head);
      for (const piece of pieces) {
        if (socket.closed) break;
        if (!socket.write(piece)) await Promise.race([closed, once(socket, "drain").catch(() => undefined)]);
        if (apart) await new Promise(setImmediate);
      }
      await ended;
      socket.destroy();
      return received;
    },

    async cpuMs() {
      const { body } = await request(`${url}/metrics`, { dispatcher });
      return Number(/^process_cpu_seconds_total (.*)$/m.exec(await body.text())![1]) * 1_000;
    },

    close: () => dispatcher.close(),
  };
}
