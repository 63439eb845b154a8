import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";

/** An answer of an upstream; a string body is sent as it is, any other as JSON. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/**
 * A change of one value inside a JSON value; `at` is an index modulo the number of values, or of
 * numbers.
 */
interface Change {
  readonly at: number;
  readonly numbersOnly: boolean;
  readonly replace: (value: any) => unknown;
  readonly description: string;
}

/** Corrupts the next `times` answers to a method. */
export interface Corruption {
  readonly method: string;
  readonly times: number;
  /** Whether the chain receives a `sendTransaction` whose answer is corrupted. */
  readonly isForwarded: boolean;
  readonly corrupt: (original: UpstreamAnswer) => UpstreamAnswer;
  readonly description: string;
}

const REMOVED = Symbol("removed");

type NamedChange = readonly [description: string, replace: Change["replace"]];

const changesOfAny: fc.Arbitrary<NamedChange> = fc.oneof(
  fc.constantFrom<NamedChange[]>(
    ["removed", () => REMOVED],
    ["null", () => null],
    ["as text", String],
    ["as a number", Number],
    ["in upper case", (value) => String(value).toUpperCase()],
    ["with a zero before it", (value) => `0${value}`],
    ["with a space after it", (value) => `${value} `],
    ["k replaced by the Kelvin sign", (value) => String(value).replace(/k/i, "\u212A")],
    ["empty text", () => ""],
    ["an empty list", () => []],
    ["an empty object", () => ({})],
    ["negated", (value) => !value],
    ["twice", (value) => (Array.isArray(value) ? [...value, ...value] : [value, value])],
    ["reversed", (value) => (Array.isArray(value) ? value.toReversed() : value)],
    ["only the first element", (value) => (Array.isArray(value) ? value.slice(0, 1) : value)],
    ["with one element too many", (value) => (Array.isArray(value) ? [...value, value[0]] : value)],
    ["other base64", (value) => (Array.isArray(value) ? ["//////////8=", "base64"] : value)],
    ["an error of the chain", () => ({ InstructionError: [0, { Custom: 1 }] })],
    ["an insufficient fee", () => "InsufficientFundsForFee"],
    ["below the rent-exempt minimum", () => ({ InsufficientFundsForRent: { account_index: 0 } })],
    [
      "confirmed",
      () => ({ slot: 1, err: null, confirmations: null, confirmationStatus: "finalized" }),
    ],
  ),
  fc.jsonValue().map((value): NamedChange => [JSON.stringify(value), () => value]),
);
const changesOfNumbers = fc.constantFrom<NamedChange[]>(
  ["negative", (value) => -value],
  ["one more", (value) => Number(value) + 1],
  ["one less", (value) => value - 1],
  ["2^53", () => 2 ** 53],
  ["2^53 - 1", () => 2 ** 53 - 1],
  ["10^15", () => 1e15],
  ["1e308", () => 1e308],
  ["0", () => 0],
  ["a half", () => 0.5],
  ["as text", String],
);
const change: fc.Arbitrary<Change> = fc
  .oneof(
    fc.record({ at: fc.nat(200), named: changesOfAny, numbersOnly: fc.constant(false) }),
    fc.record({ at: fc.nat(200), named: changesOfNumbers, numbersOnly: fc.constant(true) }),
  )
  .map(({ named: [name, replace], at, numbersOnly }) => {
    return {
      at,
      numbersOnly,
      replace,
      description: `${numbersOnly ? "number" : "value"} ${at} ${name}`,
    };
  });

/** The paths of all values inside a value; the first is the value itself. */
function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (value === null || typeof value !== "object") return [path];
  return [
    path,
    ...Object.entries(value).flatMap(([name, member]) => pathsOf(member, [...path, name])),
  ];
}

function replaceAt(
  value: any,
  [name, ...rest]: readonly string[],
  replace: Change["replace"],
): unknown {
  if (name === undefined) return replace(value);
  const member = replaceAt(value[name], rest, replace);
  if (Array.isArray(value))
    return value.flatMap((old: unknown, i) =>
      String(i) !== name ? [old] : member === REMOVED ? [] : [member],
    );
  const members = Object.entries({ ...value, [name]: member });
  return Object.fromEntries(members.filter(([, one]) => one !== REMOVED));
}

function apply({ at, numbersOnly, replace }: Change, body: unknown): unknown {
  const isNumber = (path: readonly string[]) =>
    typeof path.reduce<any>((value, name) => value[name], body) === "number";
  const paths = pathsOf(body).filter((path) => !numbersOnly || isNumber(path));
  if (paths.length === 0) return body;
  const result = replaceAt(body, paths[at % paths.length]!, replace);
  return result === REMOVED ? undefined : result;
}

/** A valid answer with one to three changes. */
const changedAnswer = fc.array(change, { minLength: 1, maxLength: 3 }).map((changes) => ({
  corrupt: (original: UpstreamAnswer): UpstreamAnswer => ({
    ...original,
    body: changes.reduce((body, one) => apply(one, body), original.body),
  }),
  description: changes.map(({ description }) => description).join(", "),
}));

const JSON_RPC_ERRORS = [
  -32700, -32600, -32601, -32602, -32603, -32002, -32003, -32004, -32007, -32015, 429, 0,
];

/** An answer that is unrelated to the original. */
const unrelatedAnswer = fc
  .record({
    status: fc.oneof(
      fc.constantFrom(200, 200, 201, 204, 301, 400, 401, 402, 403, 404, 429, 500, 503),
      fc.integer({ min: 200, max: 999 }),
    ),
    headers: fc.record(
      {
        "x-rate-limit-reset": fc.oneof(
          fc.constantFrom("0", "9".repeat(400), "-1", "1e3", "soon"),
          fc.nat().map(String),
        ),
        "retry-after": fc.constantFrom("0", "-1", "x"),
        "content-type": fc.constantFrom("text/html", "application/json"),
        location: fc.constantFrom("http://127.0.0.1:1/", "/"),
      },
      { requiredKeys: [] },
    ),
    body: fc.oneof(
      fc.jsonValue(),
      fc.string(),
      fc.constantFrom("<html></html>", '{"data":[{"id":"1"', "[".repeat(10_000)),
      fc
        .constantFrom(...JSON_RPC_ERRORS)
        .map((code) => ({ jsonrpc: "2.0", id: null, error: { code, message: "no" } })),
      fc
        .constantFrom("usage-capped", "credits", "invalid-request", "__proto__")
        .map((type) => ({ type: `x/${type}`, title: 1 })),
    ),
  })
  .map((answer) => ({ corrupt: () => answer, description: JSON.stringify(answer) }));

/** Corruptions of the answers to these methods. */
export function corruptions(methods: readonly string[]): fc.Arbitrary<Corruption> {
  return fc
    .record({
      method: fc.constantFrom(...methods),
      times: fc.constantFrom(1, 1, 2, 5, 1_000),
      isForwarded: fc.oneof({ arbitrary: fc.constant(true), weight: 4 }, fc.constant(false)),
      answer: fc.oneof({ arbitrary: changedAnswer, weight: 3 }, unrelatedAnswer),
    })
    .map(({ answer, ...rest }) => ({ ...rest, ...answer }));
}

/** The upstream URLs of one gateway, and the answers that it has received. */
export interface Route {
  readonly socialUrl: string;
  readonly rpcUrl: string;
  /** The answers so far, corrupted or not. */
  readonly answers: { readonly method: string; readonly body: unknown }[];
  /** Forwards all further answers unchanged, and empties `answers`. */
  stopCorrupting(): void;
}

/**
 * Starts a proxy in front of the sandbox's servers that corrupts answers, with a route for each
 * gateway.
 */
export async function startCorruptingProxy({
  chainUrl,
  socialUrl,
}: {
  chainUrl: string;
  socialUrl: string;
}) {
  const routes = new Map<
    string,
    { remaining: { corruption: Corruption; times: number }[]; answers: Route["answers"] }
  >();

  async function answer(
    path: string,
    body: string,
    authorization: string,
  ): Promise<UpstreamAnswer> {
    const [, name = "", upstream, ...rest] = path.split("/");
    const route = routes.get(name)!;
    const method =
      upstream === "chain" ? (JSON.parse(body) as { method: string }).method : "social";
    const entry = route.remaining.find(
      ({ corruption, times }) => corruption.method === method && times > 0,
    );
    if (entry) entry.times--;
    const forward = async (): Promise<UpstreamAnswer> => {
      const response =
        upstream === "chain"
          ? await fetch(chainUrl, { method: "POST", body })
          : await fetch(`${socialUrl}/${rest.join("/")}`, { headers: { authorization } });
      const headers = { "content-type": response.headers.get("content-type") ?? "" };
      return { status: response.status, headers, body: await response.json() };
    };
    const isForwarded = !entry || entry.corruption.isForwarded || method !== "sendTransaction";
    const original = isForwarded
      ? await forward()
      : { status: 200, headers: {}, body: { result: "" } };
    const result = entry ? entry.corruption.corrupt(original) : original;
    route.answers.push({ method, body: result.body });
    return result;
  }

  const server = createServer((request, response) => {
    // An open connection would keep the gateway of a finished case in memory.
    response.shouldKeepAlive = false;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { url = "", headers } = request;
      answer(url, Buffer.concat(chunks).toString(), headers.authorization ?? "").then(
        ({ status, headers, body }) => {
          response
            .writeHead(status, headers)
            .end(typeof body === "string" ? body : JSON.stringify(body));
        },
        () => {
          response.destroy();
        },
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    addRoute(applied: readonly Corruption[]): Route {
      const name = String(routes.size);
      const remaining = applied.map((corruption) => ({ corruption, times: corruption.times }));
      const answers: Route["answers"] = [];
      routes.set(name, { remaining, answers });
      return {
        socialUrl: `${url}/${name}/social`,
        rpcUrl: `${url}/${name}/chain`,
        answers,
        stopCorrupting() {
          remaining.length = 0;
          answers.length = 0;
        },
      };
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
