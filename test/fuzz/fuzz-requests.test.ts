import { connect } from "node:net";
import {
  METHODS,
  request as startRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from "node:http";
import { buffer } from "node:stream/consumers";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, expect } from "vitest";
import { createAddresses, type AddressesOf } from "../../src/chain/launchpad/account-addresses.ts";
import { readConfig } from "../../src/config.ts";
import { ERROR_CODES, type ErrorCode } from "../../src/contract/error-codes.ts";
import type { Answer } from "../support/client.ts";
import { startWorld, type World } from "../support/world.ts";
import {
  expectError,
  expectGraphQL,
  expectLookup,
  expectNoErrorLogged,
} from "../support/fuzz/contract.ts";
import { fuzz } from "../support/fuzz/fuzz.ts";

let world: World;
let addressesOf: AddressesOf;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_MAX: "1000000" });
  addressesOf = createAddresses(readConfig(world.sandbox.env));
});
afterAll(() => world.close());

/**
 * The codes that bad input may cause; the other codes are failures of the service or an upstream.
 */
const BAD_INPUT = Object.keys(ERROR_CODES).filter(
  (code) => ERROR_CODES[code as ErrorCode].status < 500 && !code.endsWith("RATE_LIMITED"),
) as ErrorCode[];

/** By content coding. */
const DECODERS: Readonly<Record<string, (body: Uint8Array) => Buffer>> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
};

/** Sends a request through node:http, which does not normalize the path as fetch does. */
async function send(
  method: string,
  path: string,
  headers: OutgoingHttpHeaders = {},
  body?: Uint8Array,
): Promise<Answer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    startRequest(world.url, { method, path, headers }, resolve).on("error", reject).end(body);
  });
  const received = await buffer(response);
  const decode =
    received.length > 0 ? DECODERS[response.headers["content-encoding"] ?? ""] : undefined;
  const text = (decode?.(received) ?? received).toString();
  const answerHeaders = new Headers();
  for (let i = 0; i < response.rawHeaders.length; i += 2)
    answerHeaders.append(response.rawHeaders[i]!, response.rawHeaders[i + 1]!);
  const isJson = answerHeaders.get("content-type")?.includes("json") && text !== "";
  return {
    status: response.statusCode!,
    headers: answerHeaders,
    body: isJson ? JSON.parse(text) : text,
  };
}

const plainText = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.stringMatching(/^[A-Za-z0-9]{1,15}$/),
  fc.constantFrom(
    "creator",
    "CREATOR",
    "suspended",
    "@creator",
    "cre ator",
    "creator\n",
    "__proto__",
    "",
  ),
);

/** Text for a query string: encoded, partly encoded, or not encoded. */
const queryText = fc.oneof(
  plainText.map((text) => encodeURIComponent(text.toWellFormed())),
  fc.string().map((text) => text.replace(/[^\x21-\x7e]|#/g, "+")),
  fc
    .array(
      fc.constantFrom("%", "%4", "%41", "%ff", "%00", "+", "a", "&", "=", ";", "%C3", "%A9", "#"),
    )
    .map((parts) => parts.join("")),
);
const query = fc.oneof(
  queryText,
  queryText.map((handle) => `handle=${handle}`),
  fc
    .array(
      fc.tuple(fc.constantFrom("handle", "Handle", "handle%00", "%68andle", "a", ""), queryText),
      {
        maxLength: 4,
      },
    )
    .map((pairs) => pairs.map((pair) => pair.join("=")).join("&")),
);

fuzz("any query of a lookup gets its wallet or the matching error", {
  share: 0.22,
  cases: query,
  async check(text) {
    const answer = await send("GET", `/wallet/lookup?${text}`);
    // A # starts the fragment, which is not part of the query.
    const handles = new URLSearchParams(text.split("#")[0]).getAll("handle");
    const [handle = ""] = handles;
    if (handles.length === 0) expectError(answer, ["HANDLE_REQUIRED"]);
    else if (handles.length > 1 || !/^[A-Za-z0-9]{1,15}$/.test(handle))
      expectError(answer, ["INVALID_HANDLE"]);
    else {
      const account = world.sandbox.accounts.find(
        (candidate) =>
          candidate.handle.toLowerCase() === handle.toLowerCase() && !candidate.suspended,
      );
      expectLookup(answer, addressesOf, account ? [] : ["SOCIAL_NOT_FOUND"]);
      expect(answer.body.socialId).toBe(account?.id);
    }
    expectNoErrorLogged(world.logLines);
  },
});

const invalidId = fc.oneof(
  fc.jsonValue().filter((value) => typeof value !== "string" || !/^[0-9]{1,20}$/.test(value)),
  fc.constantFrom(
    "",
    "0",
    "00",
    "-1",
    "1.0",
    "1e3",
    "0x1",
    " 1",
    "1\n",
    "١٢٣",
    "18446744073709551616",
    "9".repeat(20),
  ),
);
const bytes = fc.oneof(
  fc.uint8Array(),
  fc.string({ unit: "binary" }).map((text) => Buffer.from(text)),
);
const utf8 = (value: unknown) => Buffer.from(JSON.stringify(value));
/** A body, and whether it contains a valid id. */
const collectBody = fc.oneof(
  fc.record({ body: bytes, isValid: fc.constant(false) }),
  fc.record({ body: fc.jsonValue().map(utf8), isValid: fc.constant(false) }),
  fc.record({ body: invalidId.map((socialId) => utf8({ socialId })), isValid: fc.constant(false) }),
  fc.record({
    body: fc
      .bigInt({ min: 1n, max: 2n ** 64n - 1n })
      .map((id) => utf8({ socialId: id.toString() })),
    isValid: fc.constant(true),
  }),
  fc.record({
    body: fc
      .tuple(fc.jsonValue(), fc.nat(20_000))
      .map(([other, length]) => utf8({ other, padding: "x".repeat(length), socialId: 1 })),
    isValid: fc.constant(false),
  }),
  fc.constantFrom(
    { body: Buffer.from('{"__proto__":{"socialId":"1"}}'), isValid: false },
    { body: Buffer.from('{"socialId":"1","socialId":2}'), isValid: false },
    { body: Buffer.from("[".repeat(16_000)), isValid: false },
    { body: Buffer.from("\uFEFF{}"), isValid: false },
    { body: Buffer.from('{"socialId":"\\ud800"}'), isValid: false },
  ),
);
const contentType = fc.option(
  fc.constantFrom(
    "application/json",
    "application/json; charset=utf-8",
    "application/json;charset=utf-16",
    "application/graphql",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "text/plain",
    "json",
    "",
  ),
  { nil: undefined },
);

fuzz("any body of a collect gets the matching error", {
  share: 0.2,
  cases: fc.record({ sent: collectBody, type: contentType }),
  async check({ sent: { body, isValid }, type }) {
    const headers = {
      "content-length": body.length,
      ...(type === undefined ? {} : { "content-type": type }),
    };
    const answer = await send("POST", "/collect", headers, body);
    // The vaults of these random ids are empty.
    const isRead = isValid && !type?.includes("utf-16");
    expectError(answer, [isRead ? "NOTHING_TO_COLLECT" : "INVALID_SOCIAL_ID"], { success: false });
    expectNoErrorLogged(world.logLines);
  },
});

const headerValue = fc.stringMatching(/^[\x21-\x7e]([\x20-\x7e]{0,30}[\x21-\x7e])?$/);
const headers = fc
  .record(
    {
      "content-type": fc.oneof(
        headerValue,
        contentType.map((type) => type ?? ""),
      ),
      accept: fc.oneof(
        headerValue,
        fc.constantFrom("text/html", "*/*", "application/json;q=0", "text/event-stream"),
      ),
      "accept-encoding": fc.constantFrom("gzip", "br", "identity;q=0", "*"),
      "content-encoding": fc.constantFrom("gzip", "br", "identity", "x"),
      "x-forwarded-for": fc.oneof(headerValue, fc.ipV4(), fc.ipV6(), fc.constant("1.2.3.4, , ::1")),
      host: fc.oneof(headerValue, fc.constantFrom("", "a/b", "[::1", "user@host:99999")),
      origin: headerValue,
      range: fc.constantFrom("bytes=0-1", "x"),
      "if-none-match": headerValue,
      expect: fc.constantFrom("100-continue"),
      "x-http-method-override": fc.constantFrom("POST", "DELETE"),
    },
    { requiredKeys: [] },
  )
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== "")));
const path = fc.oneof(
  fc.constantFrom(
    "/wallet/lookup",
    "/collect",
    "/graphql",
    "/livez",
    "/metrics",
    "/openapi.json",
    "/",
    "//",
    "/%",
  ),
  fc.webPath().map((text) => text || "/"),
  fc.stringMatching(/^\/[\x21-\x7e]{0,40}$/),
  fc.constantFrom(
    "http://other.example/collect",
    "http://[",
    "/collect/",
    "/collect%00",
    "/./collect",
    "/x/../collect",
    "/COLLECT",
    "/graphql/health",
  ),
);
const method = fc.oneof(
  fc.constantFrom("GET", "POST", "HEAD", "OPTIONS"),
  fc.constantFrom(...METHODS.filter((name) => name !== "CONNECT")),
);

fuzz("any method, path and headers get a documented response", {
  share: 0.16,
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
      const isCollect =
        method === "POST" && ["/collect", "http://other.example/collect"].includes(path);
      expectError(answer, BAD_INPUT, isCollect ? { success: false } : {});
    } else if (status >= 400) expectGraphQL(read, BAD_INPUT);
    expectNoErrorLogged(world.logLines);
  },
});

/** Sends any bytes; returns what is received before the connection closes or is idle for 20 ms. */
function sendBytes(sent: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(world.url);
    let answer = "";
    const socket = connect(Number(port), hostname, () => socket.write(sent));
    socket.on("data", (chunk) => (answer += chunk.toString("latin1")));
    socket
      .on("error", () => undefined)
      .on("close", () => {
        resolve(answer);
      });
    socket.setTimeout(20, () => socket.destroy());
  });
}

const rawBytes = fc.oneof(
  bytes,
  fc
    .tuple(
      fc.constantFrom("GET", "POST", "PRI", "get", "\0"),
      fc.string(),
      fc.array(fc.string()),
      bytes,
    )
    .map(([method, path, lines, body]) =>
      Buffer.concat([
        Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`),
        body,
      ]),
    ),
  fc
    .tuple(fc.constantFrom("5", "-1", "1e9", "99999999999999999999", "5, 6", " "), bytes)
    .map(([length, body]) =>
      Buffer.concat([
        Buffer.from(`POST /collect HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`),
        body,
      ]),
    ),
  fc
    .tuple(fc.constantFrom("chunked", "gzip, chunked", "x"), bytes)
    .map(([coding, body]) =>
      Buffer.concat([
        Buffer.from(`POST /graphql HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ${coding}\r\n\r\n`),
        body,
      ]),
    ),
);

fuzz("any bytes on a connection get a valid HTTP response or none", {
  share: 0.02,
  cases: rawBytes,
  async check(sent) {
    const answer = await sendBytes(sent);
    if (answer !== "") expect(answer).toMatch(/^HTTP\/1\.1 (200|4\d\d) /);
    expect((await send("GET", "/livez")).status).toBe(200);
    expectNoErrorLogged(world.logLines);
  },
});
