import {
  METHODS,
  request as startRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from "node:http";
import { text } from "node:stream/consumers";
import fc from "fast-check";
import { expect } from "vitest";
import { ERROR_CODES, type ErrorCode } from "../../src/contract/error-codes.ts";
import type { Answer } from "../support/client.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { expectError, expectGraphQL, expectNoErrorLogged } from "../support/fuzz/contract.ts";
import { fuzz } from "../support/fuzz/fuzz.ts";

const test = withWorld({ RATE_LIMIT_MAX: "1000000" });

/**
 * The codes that bad input may cause; the other codes are failures of the service or an upstream.
 */
const BAD_INPUT = Object.keys(ERROR_CODES).filter(
  (code) => ERROR_CODES[code as ErrorCode].status < 500 && !code.endsWith("RATE_LIMITED"),
) as ErrorCode[];

/** Sends a request through node:http, which does not normalize the path as fetch does. */
async function send(
  method: string,
  path: string,
  headers: OutgoingHttpHeaders = {},
  sent?: Uint8Array,
): Promise<Answer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    startRequest(world.url, { method, path, headers }, resolve).on("error", reject).end(sent);
  });
  const body = await text(response);
  const answerHeaders = new Headers();
  for (let i = 0; i < response.rawHeaders.length; i += 2)
    answerHeaders.append(response.rawHeaders[i]!, response.rawHeaders[i + 1]!);
  const isJson = answerHeaders.get("content-type")?.includes("json") && body !== "";
  return {
    status: response.statusCode!,
    headers: answerHeaders,
    body: isJson ? JSON.parse(body) : body,
  };
}

/** Text for a query string: encoded, partly encoded, or not encoded. */
const queryText = fc.oneof(
  fc.string({ unit: "binary" }).map((each) => encodeURIComponent(each.toWellFormed())),
  fc.constantFrom("creator", "suspended", "@creator", "__proto__", "%", "%4", "%ff", "%00", "+#"),
);
const query = fc
  .array(fc.tuple(fc.constantFrom("handle", "%68andle", "mint", "socialId", ""), queryText), {
    maxLength: 4,
  })
  .map((pairs) => pairs.map((pair) => pair.join("=")).join("&"));

const bytes = fc.oneof(
  fc.uint8Array(),
  fc.string({ unit: "binary" }).map((text) => Buffer.from(text)),
);
const contentType = fc.constantFrom(
  ...["application/json", "application/json;charset=utf-16", "application/graphql"],
  ...["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "json", ""],
);

const headerValue = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,30}[\x21-\x7e])?$/);
const headers = fc
  .record(
    {
      "content-type": fc.oneof(headerValue, contentType),
      accept: fc.oneof(
        headerValue,
        fc.constantFrom("text/html", "*/*", "application/json;q=0", "text/event-stream"),
      ),
      "content-encoding": fc.constantFrom("gzip", "br", "identity", "x"),
      "x-forwarded-for": fc.oneof(headerValue, fc.ipV4(), fc.ipV6(), fc.constant("1.2.3.4, , ::1")),
      host: fc.oneof(headerValue, fc.constantFrom("", "a/b", "[::1", "user@host:99999")),
      origin: headerValue,
      range: fc.constantFrom("bytes=0-1", "x"),
      "if-none-match": headerValue,
      expect: fc.constantFrom("100-continue"),
    },
    { requiredKeys: [] },
  )
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== "")));
const path = fc.oneof(
  fc.constantFrom("/wallet/lookup", "/wallets", "/collect", "/graphql", "/livez", "/metrics", "/"),
  fc.constantFrom("http://other.example/collect", "http://[", "/collect%00", "/x/../collect"),
  fc.webPath().map((each) => each || "/"),
  fc.stringMatching(/^\/[\x21-\x7e]{0,40}$/),
);
const method = fc.oneof(
  fc.constantFrom("GET", "POST", "HEAD", "OPTIONS"),
  fc.constantFrom(...METHODS.filter((name) => name !== "CONNECT")),
);

fuzz("any method, path and headers get a documented response", {
  share: 0.16,
  test,
  cases: fc.record({
    method,
    path,
    query: fc.option(query, { nil: undefined }),
    headers,
    body: bytes,
  }),
  async check({ method, path, query, headers, body }) {
    const target = query === undefined ? path : `${path}?${query}`;
    const withBody = !["GET", "HEAD", "OPTIONS"].includes(method);
    const answer = await send(
      method,
      target,
      withBody ? { ...headers, "content-length": body.length } : headers,
      withBody ? body : undefined,
    );
    const { status, body: read } = answer;
    expect(status).toBeGreaterThanOrEqual(200);
    expect(status).toBeLessThan(500);
    expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    if (method === "HEAD") expect(read).toBe("");
    else if (status >= 400 && answer.headers.get("content-type")?.startsWith("text/html")) {
      // Only browsers at unknown paths get a page instead of an error.
      expect([method, status]).toEqual(["GET", 404]);
      expect(headers.accept).toMatch(/text\/(html|\*)/i);
      expect(read).toContain("There is nothing at this address.");
    } else if (status >= 400 && read.error !== undefined) {
      // A request with an invalid Host reaches no route.
      const isCollect =
        method === "POST" &&
        ["/collect", "http://other.example/collect"].includes(path) &&
        read.error !== "BAD_REQUEST";
      expectError(answer, BAD_INPUT, isCollect ? { success: false } : {});
    } else if (status >= 400) expectGraphQL(read, BAD_INPUT);
    expectNoErrorLogged(world.logLines);
  },
});
