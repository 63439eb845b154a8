import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { listen } from "../../src/http/server.ts";
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
