import { getEventListeners } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { listen } from "../../src/http/server.ts";
import { eventually } from "../support/eventually.ts";
import { hold, isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
let server: Awaited<ReturnType<typeof listen>>;
/** The signals of the connections, in the order of their requests. */
const signals: AbortSignal[] = [];
beforeAll(async () => {
  world = await startWorld({ SOCIAL_CACHE_SECONDS: "0", RATE_LIMIT_MAX: "1000" });
  server = await listen(
    {
      ...world.gateway.api,
      handle(request, response, context) {
        signals.push(context.signal);
        return world.gateway.api.handle(request, response, context);
      },
    },
    { host: "127.0.0.1", port: 0 },
  );
});
afterAll(async () => {
  await server.close();
  await world.close();
});

const listeners = () => signals.map((signal) => getEventListeners(signal, "abort").length);

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

it("requests of one connection share its signal, and remove their listeners when they end", async () => {
  const { send, disconnect } = connect();
  const { id } = world.account("creator");
  const query = `{ walletById(socialId: "${id}") { handle balance { total } history { nodes { kind } } } }`;
  // Parsed, then from the cache.
  for (let i = 0; i < 3; i++) {
    expect(JSON.parse(await send("GET", "/wallet/lookup?handle=creator"))).toHaveProperty(
      "balance",
    );
    expect(JSON.parse(await send("POST", "/graphql", { query }))).not.toHaveProperty("errors");
    expect(JSON.parse(await send("POST", "/collect", { socialId: id }))).toHaveProperty("success");
  }
  expect(await send("GET", "/")).toContain("<html");
  expect(new Set(signals).size).toBe(1);
  expect(listeners()).toEqual(Array(10).fill(0));
  disconnect();
  await eventually(() => {
    expect(signals[0]!.aborted).toBe(true);
  });
});

it("a request ends as ABORTED when its caller disconnects, although the chain has not answered", async () => {
  signals.length = 0;
  const release = hold(world.sandbox.rpc, isMethod("getMultipleAccounts"));
  const { send, disconnect } = connect();
  const left = send("GET", "/wallet/lookup?handle=creator");
  await eventually(() => {
    expect(listeners()).toEqual([1]);
    expect(world.chainCalls()).toContain("getMultipleAccounts");
  });
  disconnect();
  await expect(left).rejects.toThrow();
  await eventually(() => {
    expect(world.logLines.filter((line) => line.includes('"ABORTED"'))).toHaveLength(1);
  });
  release();
});
