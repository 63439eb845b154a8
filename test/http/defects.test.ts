import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { listen } from "../../src/http/server.ts";
import { createLoopbackServer } from "../../src/sandbox/loopback-server.ts";
import { sendRaw } from "../support/raw-request.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

/** The lines at pino's level for errors. */
const errorLines = () =>
  world.logLines
    .map((line) => JSON.parse(line) as { level: number; msg: string; err?: { message: string } })
    .filter(({ level }) => level === 50)
    .map(({ msg, err }) => `${msg}: ${err!.message}`);

it("a response that cannot be sent is logged, and its caller is disconnected", async () => {
  const { api } = world.gateway;
  const server = await listen(
    {
      ...api,
      handle(request, response, connection) {
        response.writeHead = () => {
          throw new Error("no headers");
        };
        return api.handle(request, response, connection);
      },
    },
    { host: "127.0.0.1", port: 0 },
  );
  onTestFinished(() => server.close());
  const { received } = await sendRaw(server.url, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(received).toBe("");
  expect(errorLines()).toEqual(["a response could not be sent: no headers"]);
});

it("a refusal that cannot be sent is logged, and its caller is disconnected", async () => {
  world.logLines.length = 0;
  const toUTCString = vi.spyOn(Date.prototype, "toUTCString").mockImplementationOnce(() => {
    throw new Error("no date");
  });
  onTestFinished(() => {
    toUTCString.mockRestore();
  });
  expect((await sendRaw(world.url, "NO HTTP\r\n\r\n")).received).toBe("");
  expect(errorLines()).toEqual(["a refusal could not be sent: no date"]);
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

it("errors of the servers are logged, and do not end the process", async () => {
  world.logLines.length = 0;
  const admin = await listen(world.gateway.admin, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => admin.close());
  for (const { url } of [world, admin]) {
    const server = await serverAt(`${url}/livez`);
    for (const reason of ["first", "second"]) server.emit("error", new Error(reason));
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  }
  expect(errorLines()).toEqual([
    "the HTTP server failed: first",
    "the HTTP server failed: second",
    "the HTTP server failed: first",
    "the HTTP server failed: second",
  ]);
});

it("an error of a server of the sandbox is a warning, and does not end the process", async () => {
  const sandbox = await createLoopbackServer({
    port: 0,
    handle: () => ({ status: 200, body: "" }),
    describe: () => undefined,
  });
  onTestFinished(() => sandbox.close());
  const emitWarning = vi.spyOn(process, "emitWarning").mockReturnValue();
  onTestFinished(() => {
    emitWarning.mockRestore();
  });
  const server = await serverAt(sandbox.url);
  for (const reason of ["first", "second"]) server.emit("error", new Error(reason));
  expect(emitWarning.mock.calls).toEqual([[new Error("first")], [new Error("second")]]);
  expect((await fetch(sandbox.url)).status).toBe(200);
});
