import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_MAX: "1000000" });
});
afterAll(() => world.close());

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}
interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** Headers that depend on the connection, the time or the request id. */
const VARYING_HEADERS = [
  "date",
  "connection",
  "keep-alive",
  "content-length",
  "transfer-encoding",
  "x-request-id",
];
const comparable = (headers: IncomingHttpHeaders): Record<string, unknown> => ({
  ...Object.fromEntries(
    Object.entries(headers)
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => !VARYING_HEADERS.includes(name)),
  ),
  ratelimit: headers.ratelimit && "present",
});

/** Sends a request over node:http. */
function overHttp({ method, path, headers, body }: Sent): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(world.url + path, { method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.on("end", () => {
        const names = response.rawHeaders
          .filter((_, i) => i % 2 === 0)
          .map((name) => name.toLowerCase());
        expect(names).toEqual([...new Set(names)]);
        resolve({
          status: response.statusCode!,
          headers: comparable(response.headers),
          body: text,
        });
      });
    });
    request.on("error", reject).end(body);
  });
}

let texts = 0;
/** The end of a document that no other request has. All have the same length. */
const newComment = () => `\n#${String(++texts).padStart(6, "0")}`;

/**
 * The same request, whose document ends with this comment; undefined for a request without a
 * document.
 */
function withComment({ path, body, ...sent }: Sent, comment: string): Sent | undefined {
  if (sent.method === "POST") {
    let text: string;
    try {
      const params = JSON.parse(String(body));
      if (typeof params.query !== "string") return undefined;
      text = JSON.stringify({ ...params, query: `${params.query}${comment}` });
    } catch {
      // No JSON, or too deep for JSON.stringify.
      return undefined;
    }
    const headers = { ...sent.headers, "content-length": String(Buffer.byteLength(text)) };
    return { ...sent, path, headers, body: text };
  }
  const url = new URL(path, "http://x");
  const query = url.searchParams.get("query");
  if (!query) return undefined;
  url.searchParams.set("query", query + comment);
  return { ...sent, path: url.pathname + url.search };
}

const JSON_HEADERS = { "content-type": "application/json" };
const post = (body: unknown, headers: Record<string, string> = JSON_HEADERS): Sent => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return {
    method: "POST",
    path: "/graphql",
    headers: { ...headers, "content-length": String(Buffer.byteLength(text)) },
    body: text,
  };
};

/** The same as a GET. A parameter is JSON unless it is text. */
const get = (params: Record<string, unknown>, headers: Record<string, string> = {}): Sent => {
  const given = Object.entries(params).filter(([, value]) => value !== undefined);
  const texts = given.map(([name, value]) => [
    name,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  return { method: "GET", path: `/graphql?${new URLSearchParams(texts).toString()}`, headers };
};

const WALLET = "id handle socialId address";
const ALL = `${WALLET} balance { vault pda total withdrawable vaultLamports pdaLamports totalLamports }`;
const HANDLES = [
  "creator",
  "CREATOR",
  "newcomer",
  "dusty",
  "suspended",
  "graduate",
  "nobody",
  "bad-handle",
  "",
];

const documents: (readonly [query: string, variables?: unknown, operationName?: unknown])[] = [
  ...HANDLES.flatMap((h) => [
    [`{ wallet(handle: ${JSON.stringify(h)}) { ${ALL} } }`] as const,
    [`query W($h: String!) { wallet(handle: $h) { ${WALLET} __typename } }`, { h }] as const,
    [
      `query W($h: String!) { a: wallet(handle: $h) { ...F } b: wallet(handle: "creator") { ...F balance { vault } } } fragment F on Wallet { handle ... on Wallet { address } }`,
      { h },
    ] as const,
    [
      `query W($h: [String!]!) { wallets(handles: $h) { ${WALLET} balance { pda } } }`,
      { h: [h, "creator", "nobody"] },
    ] as const,
    [`{ wallets(handles: ["creator", ${JSON.stringify(h)}]) { handle } }`] as const,
    [
      `query W($h: String!) { wallet(handle: $h) { handle } wallet(handle: $h) { address } }`,
      { h },
    ] as const,
  ]),
  ...[
    "17",
    "0017",
    "1523400000000000123",
    "99999999999999999999",
    "18446744073709551616",
    "x",
    "",
    "-1",
  ].flatMap((id) => [
    [
      `query I($id: String!) { walletById(socialId: $id) { ${WALLET} balance { vaultLamports } } }`,
      { id },
    ] as const,
    [`{ walletById(socialId: ${JSON.stringify(id)}) { address socialId } }`] as const,
  ]),
  ...["99", "x", "", "98"].flatMap((id) => [
    [
      `mutation C($id: String!) { collect(socialId: $id) { success collected error message newBalance txSignature wallet { id address } __typename } }`,
      { id },
    ] as const,
    [
      `mutation { a: collect(socialId: ${JSON.stringify(id)}) { success } b: collect(socialId: "97") { error } }`,
    ] as const,
  ]),
  // Variables of a wrong type, missing or superfluous.
  ...[
    undefined,
    null,
    {},
    { h: null },
    { h: 5 },
    { h: ["creator"] },
    { h: { a: 1 } },
    { h: true },
    { h: "creator", more: 1 },
    [],
    "h",
    7,
  ].map(
    (variables) => [`query W($h: String!) { wallet(handle: $h) { handle } }`, variables] as const,
  ),
  ...[{ h: "creator" }, { h: [] }, { h: [null] }, { h: null }, {}].map(
    (variables) =>
      [`query W($h: [String!]!) { wallets(handles: $h) { handle } }`, variables] as const,
  ),
  ...[{}, { h: null }, { h: "newcomer" }].map(
    (variables) =>
      [`query W($h: String = "creator") { wallet(handle: $h) { handle } }`, variables] as const,
  ),
  ...[{ yes: true }, { yes: false }, {}].map(
    (variables) =>
      [
        `query W($yes: Boolean!) { wallet(handle: "creator") { handle address @include(if: $yes) ... @skip(if: $yes) { socialId } } }`,
        variables,
      ] as const,
  ),
  // Operation names.
  ...["A", "B", "C", "", null, 5, "A\nquery A { __typename }", "__proto__"].map(
    (name) =>
      [
        `query A { wallet(handle: "creator") { handle } } query B { wallet(handle: "dusty") { address } }`,
        {},
        name,
      ] as const,
  ),
  ["A\nquery A { __typename }"],
  // Introspection, invalid operations, and texts that are not documents.
  ["{ __typename }"],
  ['{ __proto__: __typename wallet(handle: "creator") { handle } }'],
  ['{ constructor: wallet(handle: "creator") { toString: handle __typename } }'],
  [
    '{ ...F ...G } fragment G on Query { ...F } fragment F on Query { wallet(handle: "nobody") { handle } }',
  ],
  ["{ __schema { queryType { name } } }"],
  ['{ __type(name: "Wallet") { fields { name } } }'],
  ["{"],
  [""],
  ["{ nothing }"],
  ["{ wallet { handle } }"],
  ["query { wallet(handle: 5) { handle } }"],
  ["subscription { wallet }"],
  ["fragment F on Wallet { handle }"],
  ["{ ...F } fragment F on Query { ...F }"],
  ['# a comment\n{ wallet(handle: "creator") { handle } }'],
  ['{ wallet(handle: """creator""") { handle } }'],
  ['{ wallet(handle: "cre\\u0061tor") { handle } }'],
];

const LIST = "query W($h: [String!]!) { wallets(handles: $h) { handle } }";
const LIST_AND_MORE = `query W($h: [String!]!) { a: wallet(handle: "creator") { handle } wallets(handles: $h) { handle } }`;

/** What clients send besides the query, the variables and the name. */
const APOLLO = { clientLibrary: { name: "@apollo/client", version: "4.3.0" } };
const PERSISTED = { persistedQuery: { version: 1, sha256Hash: "ab".repeat(32) } };

/** `Accept` headers, of clients and of our own invention. */
const ACCEPT_HEADERS = [
  // curl
  "*/*",
  // Apollo Client
  "application/graphql-response+json,application/json;q=0.9",
  // urql
  "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed",
  // graphql-request
  "application/graphql-response+json, application/json",
  // Apollo Kotlin and iOS
  "multipart/mixed;deferSpec=20220824, application/graphql-response+json, application/json",
  "application/json",
  "application/json; charset=utf-8",
  "application/graphql-response+json; charset=utf-8",
  "application/json; charset=iso-8859-1",
  "application/graphql-response+json",
  "Application/GraphQL-Response+JSON",
  "application/json, */*;q=0.1",
  "application/json;q=0.1, application/graphql-response+json;q=0.2",
  "application/json;q=0, */*",
  "application/graphql-response+json;q=0, application/*",
  "application/json;q=0",
  '*/*;x="a,b", application/json;q=0.5',
  'text/html;x=",application/json"',
  "text/html",
  "image/png",
  ",",
  "",
];

const CLIENT_QUERY =
  "query W($h: String!) { wallet(handle: $h) { __typename handle balance { vault } } }";

const HTTP_FORMS: readonly Sent[] = [
  ...[
    "application/json; charset=utf-8",
    "application/json;charset=utf-8",
    "application/JSON",
    "Application/Json ; Charset=UTF-8",
    'application/json; x="a;b"',
    "application/json; x=y",
    "application/jsonx",
    "application/json, text/plain",
    "text/plain",
    "application/graphql",
    "application/x-www-form-urlencoded",
    "",
  ].map((type) => post({ query: "{ __typename }" }, { "content-type": type })),
  ...ACCEPT_HEADERS.flatMap((accept) =>
    [
      { query: "{ __typename }" },
      { query: CLIENT_QUERY, variables: {} },
      { query: CLIENT_QUERY, variables: { h: 5 } },
      { query: CLIENT_QUERY, variables: { h: "creator" }, operationName: "W" },
      { query: CLIENT_QUERY, variables: { h: "creator" }, operationName: "W", extensions: APOLLO },
      { query: CLIENT_QUERY, variables: { h: "creator" }, extensions: PERSISTED },
      { query: CLIENT_QUERY, variables: { h: "nobody" }, operationName: "Other" },
      { query: '{ wallet(handle: "nobody") { handle } }' },
      { query: "{ nothing }" },
      { query: "{" },
      { extensions: PERSISTED, operationName: "W", variables: { h: "creator" } },
      { query: null, extensions: PERSISTED },
      { extensions: APOLLO },
      {},
    ].map((body) => post(body, { ...JSON_HEADERS, accept })),
  ),
  ...[
    "",
    "null",
    "5",
    "[]",
    '"{ __typename }"',
    "{",
    "{}",
    '{"query":null}',
    '{"query":5}',
    '{"query":["{ __typename }"]}',
    '[{"query":"{ __typename }"}]',
    '\ufeff{"query":"{ __typename }"}',
    '{"query":"{ __typename }","query":"{ nothing }"}',
    '{"__proto__":{"query":"{ __typename }"}}',
  ].map((body) => post(body)),
  ...[
    { extensions: {} },
    { extensions: null },
    { extensions: 5 },
    { extensions: "" },
    { extensions: [] },
    { extensions: APOLLO },
    { extensions: PERSISTED },
    { extensions: { persistedQuery: null } },
    { extensions: APOLLO, other: 1 },
    { other: 1 },
    { other: null },
    { id: "x" },
    { operationName: "" },
    { variables: "" },
  ].map((more) => post({ query: "{ __typename }", ...more })),
  // Too large or too complex, in the document or the variables.
  ...[
    { query: "{ __typename } ".repeat(1_500) },
    { query: `{ ${"__typename ".repeat(101)} }` },
    { query: `{ __typename ${"@skip(if: false) ".repeat(201)} }` },
    { query: "{ a ".repeat(5_000) },
    { query: "{ ...F } fragment F on Query { wallet(handle: 5) { ...F } }" },
    {
      query: `mutation { ${Array.from({ length: 11 }, (_, i) => `c${i}: collect(socialId: "9") { success }`).join(" ")} }`,
    },
    { query: '{ wallet(handle: "creator") { balance } }' },
    { query: '{ wallet(handle: "creator") { adress } }' },
    { query: LIST, variables: { h: new Array<string>(101).fill("creator") } },
    { query: LIST, variables: { h: new Array<number>(1_000).fill(5) } },
    { query: LIST, variables: { h: ["creator", "dusty"] } },
    { query: LIST, variables: { h: { long: "x".repeat(50_000) } } },
    { query: LIST, variables: { h: "x".repeat(50_000) } },
    { query: LIST_AND_MORE, variables: { h: new Array<string>(100).fill("creator") } },
    { query: LIST_AND_MORE, variables: { h: new Array<string>(99).fill("creator") } },
    `{"query":${JSON.stringify(LIST)},"variables":{"h":${"[".repeat(40_000)}${"]".repeat(40_000)}}}`,
  ].map((body) => post(body)),
  post({ query: `{ wallet(handle: "creator") { handle } ${"# ".repeat(49_000)} \n}` }),
  post({ query: `{ __typename } ${"# ".repeat(60_000)}` }),
  {
    method: "POST",
    path: "/graphql?x=1",
    headers: JSON_HEADERS,
    body: '{"query":"{ __typename }"}',
  },
  { ...post({ query: CLIENT_QUERY, variables: { h: "creator" } }), path: "/graphql?op=W" },
  { ...post({ query: CLIENT_QUERY, variables: { h: "creator" } }), path: "/graphqlx" },
  ...[
    ...ACCEPT_HEADERS,
    "text/*",
    "TEXT/HTML;q=0.1, application/json",
    "text/html;q=0, */*",
  ].flatMap((accept) =>
    [
      { query: "{ __typename }" },
      { query: CLIENT_QUERY, variables: { h: "creator" }, operationName: "W", extensions: APOLLO },
      { query: "{ nothing }" },
      { extensions: PERSISTED, operationName: "W" },
    ].map((params) => get(params, { accept })),
  ),
  ...[
    { query: "" },
    { operationName: "W" },
    { variables: "{" },
    { variables: "null" },
    { variables: "[]" },
    { variables: "5" },
    { variables: '"h"' },
    { extensions: "{" },
    { extensions: "null" },
    { extensions: PERSISTED },
    { operationName: "" },
    { operationName: "Other" },
    { other: "1" },
  ].map((more) => get({ query: CLIENT_QUERY, variables: { h: "creator" }, ...more })),
  get({ query: 'mutation { collect(socialId: "99") { success } }' }),
  get({ query: LIST, variables: { h: new Array<string>(101).fill("creator") } }),
  { method: "GET", path: "/graphql?query={__typename}&query={nothing}" },
  { method: "GET", path: "/graphql?query=%7B__typename%7D%" },
  { method: "GET", path: "/graphql" },
  { method: "GET", path: "/graphql?" },
  { method: "HEAD", path: "/graphql?query={__typename}" },
  { method: "PUT", path: "/graphql" },
  { method: "OPTIONS", path: "/graphql" },
];

const nameOf = ({ method, path, headers = {}, body = "" }: Sent) =>
  `${method} ${path} ${JSON.stringify(headers)} ${String(body).slice(0, 300)}`;

/** Sends a request three times: Yoga answers it, then its document is cached. */
async function expectSameResponses(sent: Sent): Promise<boolean> {
  const request = withComment(sent, newComment());
  if (!request) return false;
  const name = nameOf(request);
  const byYoga = { name, ...(await overHttp(request)) };
  for (let i = 0; i < 2; i++) expect({ name, ...(await overHttp(request)) }).toEqual(byYoga);
  return true;
}

describe("an operation of a cached document gets the response of Yoga", () => {
  it("for any document", async () => {
    expect(documents.length).toBeGreaterThan(100);
    for (const [query, variables, operationName] of documents)
      await expectSameResponses(post({ query, variables, operationName }));
  });

  it("in a URL, also if it is known from a POST", async () => {
    for (const [query, variables, operationName] of documents) {
      const params = { query, variables, operationName };
      const [known, unknown] = [newComment(), newComment()];
      const sent = withComment(get(params), unknown);
      if (!sent) continue;
      for (let i = 0; i < 2; i++) await overHttp(withComment(post(params), known)!);
      const cached = await overHttp(withComment(get(params), known)!);
      expect({ name: nameOf(sent), ...cached }).toEqual({
        name: nameOf(sent),
        ...(await overHttp(sent)),
      });
    }
  });

  it("in any form of an HTTP request", async () => {
    let count = 0;
    for (const sent of HTTP_FORMS) {
      if (await expectSameResponses(sent)) count++;
      else
        expect([nameOf(sent), (await overHttp(sent)).status < 500]).toEqual([nameOf(sent), true]);
    }
    expect(count).toBeGreaterThan(300);
  });

  it("for a list with an uncached unknown handle before a cached one", async () => {
    await world.lookup("creator");
    const query = "query ($h: [String!]!) { wallets(handles: $h) { handle } }";
    for (const unknown of ["nobodyA", "nobodyB", "nobodyC"]) {
      const { body } = await world.graphql(query, { h: ["creator", unknown, "creator"] });
      expect(body.data.wallets).toEqual([{ handle: "creator" }, null, { handle: "creator" }]);
      expect(body.errors).toMatchObject([
        { path: ["wallets", 1], extensions: { code: "SOCIAL_NOT_FOUND" } },
      ]);
    }
  });

  it("for a caller above the rate limit", async () => {
    const shared = world;
    world = await startWorld({ RATE_LIMIT_MAX: "2" });
    try {
      // What costs more than is left, and what costs more than the limit.
      for (const [count, status] of [
        [2, 429],
        [3, 400],
      ] as const) {
        const fields = Array.from(
          { length: count },
          (_, i) => `c${i}: collect(socialId: "99") { success }`,
        );
        const query = `mutation { ${fields.join(" ")} }`;
        const answers = [];
        for (let i = 0; i < 3; i++) {
          const from = (part: number) => ({
            ...JSON_HEADERS,
            "x-forwarded-for": `192.0.${part}.${10 * count + i}`,
          });
          const headers = from(2);
          // Only an operation that has been admitted is cached.
          if (count === 2 && i > 0)
            expect((await overHttp(post({ query }, from(3)))).status).toBe(200);
          await overHttp({ method: "GET", path: "/wallet/lookup?handle=creator", headers });
          const answer = await overHttp(post({ query }, headers));
          // The seconds until the next may differ by one.
          const body = answer.body.replaceAll(/(again in |"retryAfterSeconds":)\d+/g, "$1N");
          answers.push({
            ...answer,
            headers: { ...answer.headers, "retry-after": answer.headers["retry-after"] && "N" },
            body,
          });
        }
        const [byYoga] = answers;
        expect(answers).toEqual([byYoga, byYoga, byYoga]);
        expect(byYoga!.status).toBe(status);
      }
    } finally {
      await world.close();
      world = shared;
    }
  });
});

describe("a document that is expensive within the limits", () => {
  /**
   * Answers it three times: parsed, then twice from the cache. One that is exponential outlives the
   * test's timeout.
   */
  const isAnswered = async (query: string) => {
    for (let i = 0; i < 3; i++) expect((await overHttp(post({ query }))).status).toBe(200);
  };
  const times = (count: number, format: (i: number) => string) =>
    Array.from({ length: count }, (_, i) => format(i)).join(" ");

  it("is answered: a long chain of fragments, spread in many fields", async () => {
    const wallets = times(90, (i) => `w${i}: walletById(socialId: "99") { ...F0 }`);
    const fragments = times(300, (i) => `fragment F${i} on Wallet { ...F${i + 1} }`);
    await isAnswered(`{ ${wallets} } ${fragments} fragment F300 on Wallet { handle }`);
  });

  it("is answered: the maximum number of repeated fields, in the maximum number of wallets", async () => {
    const wallets = times(
      100,
      (i) => `w${i}: wallet(handle: "creator") { ${"handle ".repeat(19)} }`,
    );
    await isAnswered(`{ ${wallets} }`);
  });
});
