import { beforeEach, describe, expect } from "vitest";
import { listen } from "../../src/http/server.ts";
import { it, world } from "../support/fixtures.ts";
import { startWorld } from "../support/world.ts";

beforeEach(() => {
  // So that /readyz has something to say.
  world.sandbox.rpc.faults.add({ then: "reset" });
});

const readyz = async (headers: Record<string, string> = {}, { url } = world) =>
  (await fetch(`${url}/readyz`, { headers })).json();

describe("the details of /readyz", () => {
  const DETAILS = { status: "unavailable", reasons: ["starting"], warnings: expect.any(Array) };

  it("are shown to callers on this machine", async () => {
    expect(await readyz()).toEqual(DETAILS);
  });

  it.each([
    ["a caller behind the proxy", { "x-forwarded-for": "192.0.2.1" }],
    ["a page in a browser on this machine", { origin: "https://other.example" }],
  ])("are not shown to %s", async (_name, headers: Record<string, string>) => {
    expect(await readyz(headers)).toEqual({ status: "unavailable" });
  });

  it("are not shown on PORT if there is an ADMIN_PORT, where anyone sees them", async () => {
    const own = await startWorld({ ADMIN_PORT: "0" });
    own.sandbox.rpc.faults.add({ then: "reset" });
    const admin = await listen(own.gateway.admin, { host: "127.0.0.1", port: 0 });
    expect(await readyz({}, own)).toEqual({ status: "unavailable" });
    expect(await readyz({ "x-forwarded-for": "192.0.2.1" }, { ...own, url: admin.url })).toEqual(
      DETAILS,
    );
    await admin.close();
    await own.close();
  });
});

describe("an X-Request-Id", () => {
  const idOf = async (id: string, { url } = world) =>
    (await fetch(`${url}/livez`, { headers: { "x-request-id": id } })).headers.get("x-request-id");

  it("of a trusted proxy is kept", async () => {
    expect(await idOf("4bf92f3577b34da6-01")).toBe("4bf92f3577b34da6-01");
  });

  it.each(["", "a b", "x".repeat(129)])("that could harm a log is replaced: %j", async (id) => {
    expect(await idOf(id)).toMatch(/^[\da-f-]{36}$/);
  });

  it("of anybody else is replaced", async () => {
    const open = await startWorld({ TRUST_PROXY: "192.0.2.1" });
    expect(await idOf("4bf92f3577b34da6-01", open)).toMatch(/^[\da-f-]{36}$/);
    await open.close();
  });
});
