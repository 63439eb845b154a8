import { Registry } from "@prometheus-io/client";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { ContractError } from "../../src/contract/errors.ts";
import { createLogger, type Logger } from "../../src/observability/log.ts";
import { createSocialClient } from "../../src/social/api-client.ts";
import { createGuard } from "../../src/social/circuit-breaker.ts";
import { createCallUpstream } from "../../src/upstream/http.ts";
import { createLoopbackServer, type LoopbackServer } from "../../src/sandbox/loopback-server.ts";

let network: LoopbackServer<string>;
let answer: unknown;
const log = { error: vi.fn() };
const client = () =>
  createSocialClient({
    apiUrl: new URL(`${network.url}/prefix/`),
    token: "the-token",
    guard: createGuard({ timeoutMs: 300, log: createLogger("silent") }),
    callUpstream: createCallUpstream(new Registry()),
    log: log as unknown as Logger,
  });
const codes = (answers: ReadonlyMap<string, unknown>) =>
  Object.fromEntries(
    [...answers].map(([key, found]) => [key, found instanceof ContractError ? found.code : found]),
  );

beforeAll(async () => {
  network = await createLoopbackServer({
    port: 0,
    handle: () => ({ status: 200, body: JSON.stringify(answer) }),
    describe: ({ url, headers }) => `${url.pathname}${url.search} ${headers.authorization ?? ""}`,
  });
});
afterEach(() => {
  network.faults.clear();
  log.error.mockClear();
});
afterAll(() => network.close());

describe("one call to the network", () => {
  it("asks for names and for ids at the API's paths, with the token", async () => {
    answer = {};
    await client().findByHandles(["one", "two"]);
    await client().findByIds(["1", "2"]);
    expect(network.calls).toEqual([
      "/prefix/2/users/by?usernames=one,two Bearer the-token",
      "/prefix/2/users?ids=1,2 Bearer the-token",
    ]);
  });

  it("gives each name its own answer: one that cannot be read fails none of its neighbours", async () => {
    answer = {
      data: [
        { id: "1", username: "Good" },
        { id: "007", username: "zeros" },
        { id: 8, username: "number" },
        { id: "9" },
        null,
        { id: "11", username: "twice" },
        { id: "12", username: "Twice" },
        // The sign of Kelvin, which is a k in lower case.
        { id: "13", username: "\u212Aelvin" },
      ],
      errors: [
        {
          value: "gone",
          type: "https://api.example/2/problems/resource-not-found",
          title: "Not Found Error",
        },
        {
          value: "suspended",
          type: "https://other.example/2/problems/resource-not-found",
          title: "Forbidden",
        },
        { value: null },
        { value: "other", type: "https://api.example/2/problems/something-else" },
      ],
    };
    const asked = ["good", "zeros", "number", "twice", "gone", "suspended", "other", "unmentioned", "kelvin"];
    expect(codes(await client().findByHandles(asked))).toEqual({
      good: { id: "1", handle: "Good" },
      zeros: "SOCIAL_API_UNAVAILABLE",
      number: "SOCIAL_API_UNAVAILABLE",
      twice: "SOCIAL_API_UNAVAILABLE",
      gone: "SOCIAL_NOT_FOUND",
      suspended: "SOCIAL_NOT_FOUND",
      other: "SOCIAL_API_UNAVAILABLE",
      unmentioned: "SOCIAL_API_UNAVAILABLE",
      kelvin: "SOCIAL_API_UNAVAILABLE",
    });
  });

  it.each([
    [401, {}, "SOCIAL_API_TOKEN"],
    [402, { type: "https://api.example/2/problems/credits" }, "credit"],
    [403, { type: "https://api.example/2/problems/client-forbidden" }, "credit"],
    [429, { type: "https://api.example/2/problems/usage-capped" }, "credit"],
  ])("tells the operator what only they can mend: %i", async (status, body, words) => {
    network.faults.add({ then: { status, body: JSON.stringify(body) } });
    await expect(client().findByHandles(["one"])).rejects.toMatchObject({ code: "SOCIAL_API_UNAVAILABLE" });
    expect(log.error).toHaveBeenCalledOnce();
    expect(log.error.mock.calls[0]![1]).toContain(words);
  });

  it("writes nothing into the log that the network might have put into its answer", async () => {
    network.faults.add({
      then: { status: 403, body: JSON.stringify({ type: "the-token/THE-TOKEN?the token=" }) },
    });
    await expect(client().findByHandles(["one"])).rejects.toThrow();
    expect(JSON.stringify(log.error.mock.calls)).not.toMatch(/the.token/i);
  });

  it.each([
    ["", 60],
    ["soon", 60],
    ["1", 1],
    [String(Math.ceil(Date.now() / 1000) + 100_000), 900],
    [String(Date.now()), 900],
  ])("takes a reset of %j as a wait of %i seconds", async (reset, seconds) => {
    network.faults.add({ then: { status: 429, headers: { "x-rate-limit-reset": reset }, body: "" } });
    await expect(client().findByHandles(["one"])).rejects.toMatchObject({
      code: "SOCIAL_RATE_LIMITED",
      retryAfterSeconds: seconds,
    });
  });
});
