import { beforeEach, describe, expect } from "vitest";
import type { Answer } from "../support/client.ts";
import { withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ RATE_LIMIT_MAX: "1000000" });
beforeEach(() => {
  world.forgetCalls();
});

const upstreamCalls = () => [...world.sandbox.social.calls, ...world.chainCalls()];
const post = (body: unknown, type = "application/json") =>
  world.request("/graphql", {
    method: "POST",
    headers: { "content-type": type },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

/** Expects one BAD_REQUEST error with this status, and no upstream calls. */
function expectRefused({ status, body }: Answer, expected: number, message?: string): void {
  expect({ status, body }).toEqual({
    status: expected,
    body: {
      errors: [
        {
          message: message === undefined ? expect.any(String) : expect.stringContaining(message),
          extensions: { code: "BAD_REQUEST", moved: "no" },
        },
      ],
    },
  });
  expect(upstreamCalls()).toEqual([]);
}

/** The other attacks of https://cheatsheetseries.owasp.org/cheatsheets/GraphQL_Cheat_Sheet.html. */
describe("an attack on OWASP's list", () => {
  it("batching attacks: a batch is refused in every form, so it cannot bypass the limits", async () => {
    const query = '{ wallet(handle: "creator") { address } }';
    expectRefused(await post([{ query }, { query }]), 400);
    expectRefused(await post({ query: [query, query] }), 400);
    expectRefused(await post({ 0: { query }, 1: { query }, length: 2 }), 400);
    expectRefused(
      await post(`{"query":${JSON.stringify(query)}}\n{"query":${JSON.stringify(query)}}`),
      400,
    );
  });

  it("excessive errors: a response quotes at most a few hundred characters of the request", async () => {
    const long = "y".repeat(45_000);
    const LIST = "query ($handles: [String!]!) { wallets(handles: $handles) { address } }";
    const bodies = [
      { query: `query ${long} { ${"nothing ".repeat(50)} }` },
      { query: `{ ${long} }` },
      { query: `{ wallet(handle: ${"1".repeat(45_000)}) { handle } }` },
      { query: `{ wallet(${long}: 1) { handle } }` },
      { query: "{ __typename }", operationName: long },
      {
        query: LIST,
        variables: { handles: Object.fromEntries([...Array(5_000).keys()].map((i) => [i, i])) },
      },
    ];
    for (const body of bodies) {
      const answer = await post(body);
      expect(answer.body.errors.length).toBeGreaterThan(0);
      expect(JSON.stringify(answer.body).length).toBeLessThan(5_000);
    }
    expect(upstreamCalls()).toEqual([]);
  });
});

describe("a mutation", () => {
  const query = 'mutation { collect(socialId: "1523400000000000123") { success } }';

  it("does not run from a body that a web page can send cross-origin without a preflight", async () => {
    const form = new FormData();
    form.set("operations", JSON.stringify({ query }));
    form.set("map", "{}");
    expectRefused(
      await world.request("/graphql", { method: "POST", body: form }),
      415,
      "application/json",
    );
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "text/plain; application/json",
      "application/jsonp",
      "",
    ]) {
      expectRefused(await post({ query }, type), 415, "application/json");
    }
    expectRefused(
      await world.request(`/graphql?${new URLSearchParams({ query })}`, { method: "POST" }),
      415,
    );
  });
});
