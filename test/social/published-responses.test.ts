import { Registry } from "@prometheus-io/client";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLoopbackServer } from "../../src/sandbox/loopback-server.ts";
import type { LoopbackAnswer, LoopbackServer } from "../../src/sandbox/loopback-server.ts";
import { createSocialClient } from "../../src/social/api-client.ts";
import { createCallQuota } from "../../src/social/call-quota.ts";
import { nameOf, toHandleKey } from "../../src/social/account.ts";
import { SocialError } from "../../src/social/social-error.ts";
import { createCallUpstream } from "../../src/upstream/http.ts";
import { answers, failures, isDocumented, type By } from "../support/published-network.ts";

let network: LoopbackServer<undefined>;
let answer: LoopbackAnswer;
const callUpstream = createCallUpstream(new Registry());
beforeAll(async () => {
  network = await createLoopbackServer({
    port: 0,
    handle: (request) => (isDocumented(request) ? answer : { status: 418, body: "not documented" }),
    describe: () => undefined,
  });
});
afterAll(() => network.close());

/** Looks the names up with a new client: after a 429, an old one would make no call. */
function find(by: By, names: readonly string[]) {
  const socialApiUrl = new URL(network.url);
  const client = createSocialClient({
    socialApiUrl,
    socialTimeoutMs: 60_000,
    token: "the-token",
    // Never opens and never retries: each case is one call.
    circuitBreaker: { refusal: () => undefined, call: (call) => call() },
    quota: createCallQuota({ socialApiUrl, socialTimeoutMs: 1, redis: undefined }),
    callUpstream,
  });
  return client.find(by === "ids" ? names : names.map(toHandleKey));
}

describe("the network's published responses", () => {
  it("give each key the account that they have for it, or the reason why there is none", async () => {
    const property = fc.asyncProperty(answers, async ({ by, expected, body }) => {
      answer = {
        status: 200,
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      };
      const found = await find(by, [...expected.keys()]);
      const seen = [...found].map(([key, one]) => [
        nameOf(key),
        one instanceof SocialError ? one.failure.kind : one,
      ]);
      expect(seen).toEqual([...expected]);
    });
    await fc.assert(property, { seed: 1, numRuns: 100 });
  });

  it("fail with the documented error when they fail as a whole", async () => {
    const cases = fc.tuple(failures, fc.constantFrom<By[]>("usernames", "ids"));
    const property = fc.asyncProperty(cases, async ([{ status, kind, body }, by]) => {
      const type = "type" in body ? "application/problem+json" : "application/json";
      answer = { status, headers: { "content-type": type }, body: JSON.stringify(body) };
      const failure = kind === "refused" ? { kind, status } : { kind };
      await expect(find(by, ["1"])).rejects.toMatchObject({ name: "SocialError", failure });
    });
    await fc.assert(property, { seed: 1, numRuns: 100 });
  });
});
