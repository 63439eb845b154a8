import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished } from "vitest";
import { listen, type Responder } from "../../src/http/server.ts";
import { sendRaw } from "../support/raw-request.ts";
import { hold, isMethod } from "../support/sandbox.ts";
import { it, world } from "../support/fixtures.ts";

/** The lines at pino's level for errors. */
const errorLines = () =>
  world.logLines
    .map((line) => JSON.parse(line) as { level: number; msg: string; err?: { message: string } })
    .filter(({ level }) => level === 50)
    .map(({ msg, err }) => `${msg}: ${err!.message}`);

/** Starts a server whose handler is `fetch`, and sends it a request. */
async function answerOf(fetch: Responder["fetch"]) {
  const server = await listen({ ...world.gateway.api, fetch }, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  return sendRaw(server.url, "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

it("a response that cannot be sent is logged, and its caller is disconnected", async () => {
  const { received } = await answerOf(async (...call) => {
    const response = await world.gateway.api.fetch(...call);
    response.headers.set("x-invalid", "\n");
    return response;
  });
  expect(received).toBe("");
  expect(errorLines()).toEqual([
    expect.stringMatching(/^a response could not be sent: Invalid character in header content/),
  ]);
});

/** Node's server at this URL. */
async function serverAt(url: string): Promise<Server> {
  const servers = new Set<Server>();
  const receive = (message: unknown) => servers.add((message as { server: Server }).server);
  subscribe("http.server.request.start", receive);
  await fetch(url);
  unsubscribe("http.server.request.start", receive);
  const isAt = (server: Server) =>
    (server.address() as AddressInfo).port === Number(new URL(url).port);
  return [...servers].find(isAt)!;
}

it("errors of the server are logged, and do not end the process", async () => {
  world.logLines.length = 0;
  const url = `${world.url}/livez`;
  const server = await serverAt(url);
  for (const reason of ["first", "second"]) server.emit("error", new Error(reason));
  expect((await fetch(url)).status).toBe(200);
  expect(errorLines()).toEqual(["the HTTP server failed: first", "the HTTP server failed: second"]);
});

it("a request ends as ABORTED when its caller disconnects, although the chain has not answered", async () => {
  const release = hold(world.sandbox.rpc, isMethod("getMultipleAccounts"));
  const leaving = new AbortController();
  const { signal } = leaving;
  const left = fetch(`${world.url}/wallet/lookup?handle=creator`, { signal });
  await expect.poll(() => world.chainCalls()).toContain("getMultipleAccounts");
  leaving.abort();
  await expect(left).rejects.toThrow();
  await expect.poll(() => world.logLines.join()).toContain('"ABORTED"');
  release();
});
