import { withFaults, type FaultyServer } from "../support/faults.ts";
import { Registry } from "@prometheus-io/client";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { createLogger, type Logger } from "../../src/observability/log.ts";
import { createWarnings } from "../../src/observability/warnings.ts";
import { createSocialClient } from "../../src/social/api-client.ts";
import { createCallQuota } from "../../src/social/call-quota.ts";
import { createCircuitBreaker } from "../../src/social/circuit-breaker.ts";
import { nameOf, toHandleKey } from "../../src/social/account.ts";
import { PROFILE } from "../../src/social/profile.ts";
import { SocialError } from "../../src/social/social-error.ts";
import { createCallUpstream } from "../../src/upstream/http.ts";
import { createLoopbackServer } from "../../src/sandbox/loopback-server.ts";

let network: FaultyServer<string>;
let answer: unknown;
const log = { error: vi.fn(), warn: vi.fn() };
const client = () =>
  createSocialClient({
    socialApiUrl: new URL(`${network.url}/prefix/`),
    socialTimeoutMs: 60_000,
    token: "the-token",
    circuitBreaker: createCircuitBreaker({
      log: createLogger("silent"),
      warnings: createWarnings(log as unknown as Logger),
    }),
    quota: createCallQuota({ socialTimeoutMs: 60_000, replicas: { count: () => 1 } }),
    callUpstream: createCallUpstream(new Registry()),
  });
const results = (answers: ReadonlyMap<string, unknown>) =>
  Object.fromEntries(
    [...answers].map(([key, found]) => [
      nameOf(key),
      found instanceof SocialError ? found.failure.kind : found,
    ]),
  );
const failureOfOne = async () =>
  ((await client().find(["@one"])).get("@one") as SocialError).failure;

beforeAll(async () => {
  network = withFaults(
    await createLoopbackServer({
      port: 0,
      handle: () => ({ status: 200, body: JSON.stringify(answer) }),
    }),
    ({ url, headers }) => `${url.pathname}${url.search} ${headers.authorization ?? ""}`,
  );
});
afterEach(() => {
  network.faults.clear();
  log.error.mockClear();
});
afterAll(() => network.close());

describe("a call to the network", () => {
  it("requests names and ids at the API's paths, with the fields of profiles and the token", async () => {
    answer = {};
    await client().find(["@one", "@two"]);
    await client().find(["1", "2"]);
    expect(network.calls).toEqual([
      "/prefix/2/users/by?usernames=one,two&user.fields=name,verified,public_metrics,profile_image_url Bearer the-token",
      "/prefix/2/users?ids=1,2&user.fields=name,verified,public_metrics,profile_image_url Bearer the-token",
    ]);
  });

  it("gives each name its own result, so that an unreadable account does not fail the others", async () => {
    answer = {
      data: [
        { id: "1", username: "Good" },
        { id: "007", username: "zeros" },
        { id: 8, username: "number" },
        { id: "9" },
        null,
        { id: "11", username: "twice" },
        { id: "12", username: "Twice" },
        // The Kelvin sign becomes k in lower case.
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
        {
          resource_id: "unvalued",
          type: "https://api.example/2/problems/resource-not-found",
          title: "Not Found Error",
        },
        { type: "https://api.example/2/problems/resource-not-found" },
        { value: null },
        { value: "other", type: "https://api.example/2/problems/something-else" },
      ],
    };
    const handles = [
      "good",
      "zeros",
      "number",
      "twice",
      "gone",
      "suspended",
      "other",
      "unmentioned",
      "kelvin",
      "unvalued",
    ];
    expect(results(await client().find(handles.map(toHandleKey)))).toEqual({
      good: { id: "1", handle: "Good", profile: PROFILE.parse({}) },
      zeros: "unreadable",
      number: "unreadable",
      twice: "unreadable",
      gone: "not-found",
      suspended: "not-found",
      other: "unreadable",
      unmentioned: "unreadable",
      kelvin: "unreadable",
      unvalued: "not-found",
    });
  });

  const PICTURE = "https://pictures.example/1.png";
  const whole = {
    name: "Good",
    verified: true,
    public_metrics: { followers_count: 7, tweet_count: "?" },
    profile_image_url: PICTURE,
  };
  const read = { name: "Good", verified: true, followers: 7, pictureUrl: PICTURE };

  it.each([
    ["a whole profile", {}, {}],
    ["no verified mark", { verified: undefined }, { verified: null }],
    ["a name that is too long", { name: "a".repeat(201) }, { name: null }],
    ["metrics of another type", { public_metrics: [] }, { followers: null }],
    ["fewer than no followers", { public_metrics: { followers_count: -1 } }, { followers: null }],
    [
      "more followers than GraphQL can say",
      { public_metrics: { followers_count: 2 ** 31 } },
      { followers: null },
    ],
    [
      "a picture over http",
      { profile_image_url: "http://pictures.example/1.png" },
      { pictureUrl: null },
    ],
    ["a picture at a path", { profile_image_url: "/icon.svg" }, { pictureUrl: null }],
    [
      "a picture with a password",
      { profile_image_url: "https://a:b@c.example/" },
      { pictureUrl: null },
    ],
  ])("reads %s, and finds the account in any case", async (_name, changed, expected) => {
    answer = { data: [{ id: "1", username: "Good", ...whole, ...changed }] };
    expect(results(await client().find(["@good"]))).toEqual({
      good: { id: "1", handle: "Good", profile: { ...read, ...expected } },
    });
  });

  it.each([
    [401, {}, "SOCIAL_API_TOKEN"],
    [402, { type: "https://api.example/2/problems/credits" }, "credit"],
    [403, { type: "https://api.example/2/problems/client-forbidden" }, "access"],
    [429, { type: "https://api.example/2/problems/usage-capped" }, "cap"],
  ])("logs %i as an error, because only the operator can fix it", async (status, body, words) => {
    network.faults.add({ then: { status, body: JSON.stringify(body) } });
    expect(await failureOfOne()).toMatchObject({ kind: "refused", status });
    expect(log.error).toHaveBeenCalledOnce();
    expect(log.error.mock.calls[0]![1]).toContain(words);
  });

  it("logs only the problem type of a response body", async () => {
    network.faults.add({
      then: { status: 403, body: JSON.stringify({ type: "the-token/THE-TOKEN?the token=" }) },
    });
    await client().find(["@one"]);
    expect(JSON.stringify(log.error.mock.calls)).not.toMatch(/the.token/i);
  });

  /** The headers of a limit, whose reset is at this second. */
  const limit = (name: string, remaining: number, reset: number) => ({
    [`${name}-remaining`]: String(remaining),
    [`${name}-reset`]: String(reset),
  });

  it.each<[string, (now: number) => Record<string, string>, number]>([
    ["a reset that is no time", () => ({ "x-rate-limit-reset": "soon" }), 60],
    ["a reset that has passed", () => ({ "x-rate-limit-reset": "1" }), 1],
    ["a reset in milliseconds", (now) => ({ "x-rate-limit-reset": `${now}000` }), 900],
    [
      "the latest reset of two limits that are used up",
      (now) => ({
        ...limit("x-app-limit-24hour", 0, now + 7_200),
        ...limit("x-rate-limit", 0, now + 100),
      }),
      7_200,
    ],
    [
      "a limit that is used up beside one that is not",
      (now) => ({
        ...limit("x-app-limit-24hour", 9, now + 7_200),
        ...limit("x-rate-limit", 0, now + 100),
      }),
      100,
    ],
    [
      "a day's limit of more than a day",
      (now) => ({
        ...limit("x-app-limit-24hour", 0, now + 100_000),
        ...limit("x-rate-limit", 299, now + 100),
      }),
      86_400,
    ],
    [
      "the network's clock, which is an hour ahead",
      (now) => ({
        "x-rate-limit-reset": String(now + 3_700),
        date: new Date(1_000 * (now + 3_600)).toUTCString(),
      }),
      100,
    ],
  ])("after a 429 waits by %s: %i seconds", async (_name, headersAt, seconds) => {
    const sentAt = Math.ceil(Date.now() / 1_000);
    const date = new Date(1_000 * sentAt).toUTCString();
    const headers = { date, ...headersAt(sentAt) };
    network.faults.add({ then: { status: 429, headers, body: "" } });
    expect(await failureOfOne()).toEqual({ kind: "rate-limited", retryAfterSeconds: seconds });
  });

  it("does not take a blocked address for used-up credit or a refused app", async () => {
    const body = "\n<!DOCTYPE html><title>Access denied</title>";
    network.faults.add({ then: { status: 403, headers: { "content-type": "text/html" }, body } });
    expect(await failureOfOne()).toMatchObject({ kind: "refused", problem: "blocked" });
    expect(log.error).not.toHaveBeenCalled();
    expect(log.warn.mock.calls.at(-1)![1]).toContain("blocks this machine's address");
  });

  it.each(["data", "errors"])("reads %s: null as none", async (name) => {
    const missing = { value: "none", type: "https://api.example/2/problems/resource-not-found" };
    const full = { data: [{ id: "1", username: "one" }], errors: [missing] };
    answer = { ...full, [name]: null };
    const found = results(await client().find([name === "data" ? "@none" : "@one"]));
    expect(Object.values(found)).toEqual([
      name === "data" ? "not-found" : expect.objectContaining({ id: "1" }),
    ]);
  });
});
