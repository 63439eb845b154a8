import { getEventListeners } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { listen } from "../../src/http/server.ts";
import { eventually } from "../support/eventually.ts";
import { hold, isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let server: Awaited<ReturnType<typeof listen>>;
/** The signals of the requests, in order. */
const signals: AbortSignal[] = [];
beforeAll(async () => {
  world = await startWorld({ SOCIAL_CACHE_SECONDS: "0", RATE_LIMIT_MAX: "1000" });
  const { api } = world.gateway;
  server = await listen(
    {
      ...api,
      fetch(request, connection) {
        signals.push(request.signal);
        return api.fetch(request, connection);
      },
    },
    { host: "127.0.0.1", port: 0 },
  );
});
afterAll(async () => {
  await server.close();
  await world.close();
});

/** Sends requests one after another on one connection. */
function connect() {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const send = (method: string, path: string, body?: unknown) =>
    new Promise<string>((resolve, reject) => {
      const headers = { "content-type": "application/json" };
      httpRequest(server.url + path, { method, agent, headers }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        response.on("end", () => {
          resolve(text);
        });
      })
        .on("error", reject)
        .end(body && JSON.stringify(body));
    });
  return {
    send,
    disconnect() {
      agent.destroy();
    },
  };
}

it("a request ends as ABORTED when its caller disconnects, although the chain has not answered", async () => {
  signals.length = 0;
  const release = hold(world.sandbox.rpc, isMethod("getMultipleAccounts"));
  const { send, disconnect } = connect();
  const left = send("GET", "/wallet/lookup?handle=creator");
  await eventually(() => {
    expect(signals.map((signal) => getEventListeners(signal, "abort").length)).toEqual([1]);
    expect(world.chainCalls()).toContain("getMultipleAccounts");
  });
  disconnect();
  await expect(left).rejects.toThrow();
  await eventually(() => {
    expect(world.logLines.filter((line) => line.includes('"ABORTED"'))).toHaveLength(1);
  });
  release();
});
