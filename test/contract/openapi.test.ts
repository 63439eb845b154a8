import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  codesOf as codesOfOperation,
  ERROR_CODES,
  rowOf,
  type ErrorCode,
} from "../../src/contract/error-codes.ts";
import { SCENARIOS, startScenarioWorld } from "../support/error-scenarios.ts";
import type { Answer } from "../support/client.ts";
import { sendRaw } from "../support/raw-request.ts";
import { startWorld, type World } from "../support/world.ts";

/** With a rate-limit window longer than any test run. */
const ENV = { BASE_PATH: "/api", RATE_LIMIT_MAX: "1", RATE_LIMIT_WINDOW_SECONDS: 3_600 };

let world: World;
/** A service with a public URL. */
let published: World;
/** The document as served. */
let document: any;
/** The document with its references resolved. */
let resolved: any;
let validation: unknown;
const validator = new Validator();
beforeAll(async () => {
  world = await startWorld(ENV);
  published = await startWorld({ PUBLIC_URL: "https://tributary.example/base/" });
  document = (await world.request("/openapi.json")).body;
  validation = await validator.validate(structuredClone(document));
  resolved = validator.resolveRefs();
});
afterEach(() => {
  world.sandbox.social.faults.clear();
  world.sandbox.rpc.faults.clear();
});
afterAll(() => Promise.all([world.close(), published.close()]));

/** Reads the document of a service by the name `host`. */
async function readBy(host: string, { url }: World) {
  const path = `${new URL(url).pathname.replace(/\/$/, "")}/openapi.json`;
  const { body } = await sendRaw(
    url,
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
  );
  return JSON.parse(body);
}

const ajv = addFormats.default(new Ajv2020({ strictRequired: true, allErrors: true }));
ajv.addKeyword("discriminator");

/** The schema violations of a value. Members that the schema does not list are violations. */
function problemsOf(value: unknown, schema: object) {
  const validate = ajv.compile(closed(schema));
  validate(value);
  return validate.errors ?? [];
}

function closed(value: any): any {
  if (Array.isArray(value)) return value.map(closed);
  if (value === null || typeof value !== "object") return value;
  const copy = Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, closed(member)]),
  );
  return copy.type === "object" && copy.properties
    ? { ...copy, additionalProperties: false }
    : copy;
}

const bodySchema = (response: any) => response.content["application/json"].schema;

const examplesOf = (response: any): any[] =>
  Object.values<any>(response.content["application/json"].examples).map(({ value }) => value);

/** The codes that a response may have; undefined stands for success. */
const codesOf = (response: any): (string | undefined)[] =>
  examplesOf(response).map(({ error }) => error);

const operations = (): any[] =>
  Object.values(resolved.paths).flatMap((item: any) => Object.values(item));
const keyOf = (operationId: string, status: number | string, code: string | undefined) =>
  [operationId, status, code ?? "success"].join(" ");

/** Headers of HTTP, browser security and caching, which the document does not list. */
const GENERAL_HEADERS =
  /^(date|connection|keep-alive|transfer-encoding|content-(length|type)|cache-control|vary|access-control-.*|content-security-policy|x-content-type-options)$/;

/** Checks a response against the documentation of its status. */
function check(response: any, { headers, body }: Answer): void {
  expect(response).toBeDefined();
  expect(headers.get("content-type")).toMatch(/^application\/json\b/);
  expect(problemsOf(body, bodySchema(response))).toEqual([]);
  for (const [name, { required, schema }] of Object.entries<any>(response.headers)) {
    const text = headers.get(name);
    if (text === null) expect([name, required]).toEqual([name, false]);
    else expect(problemsOf(schema.type === "integer" ? Number(text) : text, schema)).toEqual([]);
  }
  const known = Object.keys(response.headers).map((name) => name.toLowerCase());
  const others = [...headers.keys()].filter(
    (name) => !known.includes(name) && !GENERAL_HEADERS.test(name),
  );
  expect(others).toEqual([]);
}

/** Sections 4 and 7 of the specification. */
const SPECIFIED = {
  lookup: {
    HANDLE_REQUIRED: 400,
    INVALID_HANDLE: 400,
    SOCIAL_NOT_FOUND: 404,
    SOCIAL_RATE_LIMITED: 429,
    SOCIAL_API_UNAVAILABLE: 503,
    SERVICE_BUSY: 503,
    LOOKUP_FAILED: 500,
    RATE_LIMITED: 429,
  },
  collect: {
    INVALID_SOCIAL_ID: 400,
    NOTHING_TO_COLLECT: 400,
    INSUFFICIENT_FUNDS: 500,
    COLLECT_FAILED: 500,
    RATE_LIMITED: 429,
  },
} as const;

it.each(["lookup", "collect"] as const)(
  "the table has the specified codes and statuses of %s",
  (operation) => {
    const statuses = codesOfOperation(operation).map((code) => [code, ERROR_CODES[code].status]);
    expect(Object.fromEntries(statuses)).toMatchObject(SPECIFIED[operation]);
  },
);

it("GraphQL's ErrorCode lists every code of the table", async () => {
  const { body } = await published.graphql('{ __type(name: "ErrorCode") { enumValues { name } } }');
  const names = body.data.__type.enumValues.map(({ name }: { name: string }) => name);
  expect(names).toEqual(Object.keys(ERROR_CODES));
});

describe("/openapi.json", () => {
  it("is valid OpenAPI 3.1", () => {
    expect([validation, validator.version]).toEqual([{ valid: true }, "3.1"]);
    expect(document.openapi).toMatch(/^3\.1\./);
  });

  it("is readable from any origin, also with HEAD, and does not count against the rate limit", async () => {
    const caller = { "x-forwarded-for": "192.0.2.1" };
    for (const method of ["GET", "HEAD"]) {
      const { status, headers } = await world.request("/openapi.json", { method, headers: caller });
      expect([status, headers.get("access-control-allow-origin")]).toEqual([200, "*"]);
      expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
      expect(headers.has("ratelimit")).toBe(false);
    }
  });

  it("is named by the header Link of the first page and of REST errors", async () => {
    const link = '</api/openapi.json>; rel="service-desc"';
    for (const path of ["/", "/nowhere", "/wallet/lookup", "/wallet/lookup?handle=%40"])
      expect([path, (await world.request(path)).headers.get("link")]).toEqual([path, link]);
  });

  it("has exactly the codes of the error table, with their statuses", () => {
    const responses = [
      ...operations().map((operation) => operation.responses),
      { 404: resolved.components.responses.NotFound },
    ];
    const pairs = responses.flatMap((byStatus) =>
      Object.entries(byStatus).flatMap(([status, response]) =>
        codesOf(response).flatMap((code) => (code ? `${status} ${code}` : [])),
      ),
    );
    const table = Object.entries(ERROR_CODES).map(([code, { status }]) => `${status} ${code}`);
    expect(new Set(pairs)).toEqual(new Set([...table, "413 INVALID_SOCIAL_ID"]));
  });

  it("describes each code and has an example of each body, and every example matches its schema", () => {
    const bodies = operations().flatMap(({ responses }) => Object.values<any>(responses));
    for (const response of bodies) {
      for (const code of codesOf(response))
        if (code) expect(response.description).toContain(`\`${code}\`: `);
      for (const value of examplesOf(response))
        expect(problemsOf(value, bodySchema(response))).toEqual([]);
    }
    const parameters = operations().flatMap((operation) => operation.parameters ?? []);
    const requests = operations().flatMap(
      ({ requestBody }) => requestBody?.content["application/json"] ?? [],
    );
    const headers = bodies.flatMap((response) => Object.values<any>(response.headers));
    expect([parameters.length, requests.length, headers.length > 0]).toEqual([4, 1, true]);
    for (const { example, schema } of [...parameters, ...requests, ...headers])
      expect(problemsOf(example, schema)).toEqual([]);
  });

  it.each([
    ["localhost:4000", "http://localhost:4000/api"],
    ["192.0.2.7:4000", "http://192.0.2.7:4000/api"],
    ["[2001:db8::1]:4000", "http://[2001:db8::1]:4000/api"],
    ["tributary.example", "/api"],
    ["localhost.evil.example", "/api"],
  ])("for the host %s, names the server %s", async (host, url) => {
    expect((await readBy(host, world)).servers).toEqual([{ url }]);
  });

  it("names PUBLIC_URL as the server, whatever the host is", async () => {
    for (const host of ["localhost:4000", "other.example"]) {
      const { servers } = await readBy(host, published);
      expect([host, servers]).toEqual([host, [{ url: "https://tributary.example/base" }]]);
    }
  });
});

const OPERATION_IDS = {
  lookup: "lookUpWallet",
  wallets: "lookUpWallets",
  collect: "collectFees",
} as const;

/** Checks an error's sentence, and when it says that a caller may try again. */
function checkError({ status, headers, body }: Answer): void {
  const { retryAfterSeconds } = rowOf(body.error as ErrorCode);
  expect(body.message).toMatch(/^\S.{10,}\S$/);
  const retryAfter = headers.get("retry-after");
  if (retryAfterSeconds !== undefined) expect(retryAfter).toBe(String(retryAfterSeconds));
  if (status === 429) expect(Number(retryAfter)).toBeGreaterThan(0);
}

/** Sends the request that causes a documented response. */
type Ask = (world: World) => Promise<Answer>;

describe("every documented response occurs, and matches its documentation", () => {
  const ANSWERS: Record<string, Ask> = {
    "lookUpWallet 200 success": (world) => world.lookup("creator"),
    "lookUpWallet 405 METHOD_NOT_ALLOWED": (world) =>
      world.request("/wallet/lookup", { method: "POST" }),
    "lookUpWallets 200 success": (world) => world.request("/wallets?handle=creator&handle=@x"),
    "lookUpWallets 403 ORIGIN_NOT_ALLOWED": (world) =>
      world.request("/wallets?handle=creator", { headers: { origin: "https://other.example" } }),
    "lookUpWallets 405 METHOD_NOT_ALLOWED": (world) =>
      world.request("/wallets", { method: "POST" }),
    "collectFees 200 success": (world) => world.collect(world.account("creator").id),
    "lookUpWallet 403 ORIGIN_NOT_ALLOWED": SCENARIOS.other.ORIGIN_NOT_ALLOWED,
    "collectFees 403 ORIGIN_NOT_ALLOWED": (world) =>
      world.collect(world.account("creator").id, { origin: "https://other.example" }),
    "collectFees 405 METHOD_NOT_ALLOWED": SCENARIOS.other.METHOD_NOT_ALLOWED,
    "collectFees 413 INVALID_SOCIAL_ID": (world) => world.collect("1".repeat(20_000)),
  };
  for (const operation of ["lookup", "wallets", "collect"] as const) {
    for (const [code, ask] of Object.entries(SCENARIOS[operation]))
      ANSWERS[keyOf(OPERATION_IDS[operation], rowOf(code as ErrorCode).status, code)] = ask;
  }

  it("the cases below cover every documented response", () => {
    const documented = operations().flatMap(({ operationId, responses }) =>
      Object.entries(responses).flatMap(([status, response]) =>
        codesOf(response).map((code) => keyOf(operationId, status, code)),
      ),
    );
    expect([...new Set(documented)].sort()).toEqual(Object.keys(ANSWERS).sort());
  });

  it.each(Object.entries(ANSWERS))("%s", async (key, ask) => {
    const operation = operations().find(({ operationId }) => key.startsWith(`${operationId} `));
    const scenario = await startScenarioWorld(ENV);
    const answer = await ask(scenario).finally(() => scenario.close());
    expect(keyOf(operation.operationId, answer.status, answer.body.error)).toBe(key);
    check(operation.responses[answer.status], answer);
    if (answer.body.error) checkError(answer);
  });

  it("NOT_FOUND, at any other path", async () => {
    const answer = await SCENARIOS.other.NOT_FOUND(world);
    expect([answer.status, answer.body.error]).toEqual([404, "NOT_FOUND"]);
    check(resolved.components.responses.NotFound, answer);
  });
});
