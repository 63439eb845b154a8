import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";

/** What an upstream answers: its body as JSON, or as a text that is none. */
export interface Said {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** One change of a JSON value: at one of its places, or of its numbers, counted round and round. */
interface Change {
  readonly at: number;
  readonly isOfNumbers: boolean;
  readonly to: (value: any) => unknown;
  readonly words: string;
}

/** A lie about the answers to one method: how many of them, and whether what was asked for is done all the same. */
export interface Lie {
  readonly method: string;
  readonly times: number;
  readonly isCarriedOut: boolean;
  readonly tell: (right: Said) => Said;
  readonly words: string;
}

const REMOVED = Symbol("removed");

type Named = readonly [words: string, to: Change["to"]];

const ofAnything: fc.Arbitrary<Named> = fc.oneof(
  fc.constantFrom<Named[]>(
    ["removed", () => REMOVED],
    ["null", () => null],
    ["as text", String],
    ["as a number", Number],
    ["in capitals", (value) => String(value).toUpperCase()],
    ["with a zero before it", (value) => `0${value}`],
    ["with a space after it", (value) => `${value} `],
    ["k as the sign of Kelvin", (value) => String(value).replace(/k/i, "\u212A")],
    ["empty text", () => ""],
    ["an empty list", () => []],
    ["an empty object", () => ({})],
    ["the other", (value) => !value],
    ["twice", (value) => (Array.isArray(value) ? [...value, ...value] : [value, value])],
    ["backwards", (value) => (Array.isArray(value) ? value.toReversed() : value)],
    ["the first only", (value) => (Array.isArray(value) ? value.slice(0, 1) : value)],
    ["one too many", (value) => (Array.isArray(value) ? [...value, value[0]] : value)],
    ["other base64", (value) => (Array.isArray(value) ? ["//////////8=", "base64"] : value)],
    ["an error of the chain", () => ({ InstructionError: [0, { Custom: 1 }] })],
    ["a poor payer", () => "InsufficientFundsForFee"],
    ["too poor to exist", () => ({ InsufficientFundsForRent: { account_index: 0 } })],
    ["confirmed", () => ({ slot: 1, err: null, confirmations: null, confirmationStatus: "finalized" })],
  ),
  fc.jsonValue().map((value): Named => [JSON.stringify(value), () => value]),
);
const ofNumbers = fc.constantFrom<Named[]>(
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
    fc.record({ at: fc.nat(200), named: ofAnything, isOfNumbers: fc.constant(false) }),
    fc.record({ at: fc.nat(200), named: ofNumbers, isOfNumbers: fc.constant(true) }),
  )
  .map(({ named: [name, to], at, isOfNumbers }) => {
    return { at, isOfNumbers, to, words: `${isOfNumbers ? "number" : "place"} ${at} ${name}` };
  });

/** Every place of a value, the value itself first. */
function placesOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (value === null || typeof value !== "object") return [path];
  return [path, ...Object.entries(value).flatMap(([name, member]) => placesOf(member, [...path, name]))];
}

function changed(value: any, [name, ...rest]: readonly string[], to: Change["to"]): unknown {
  if (name === undefined) return to(value);
  const member = changed(value[name], rest, to);
  if (Array.isArray(value))
    return value.flatMap((old: unknown, i) =>
      String(i) !== name ? [old] : member === REMOVED ? [] : [member],
    );
  const members = Object.entries({ ...value, [name]: member });
  return Object.fromEntries(members.filter(([, one]) => one !== REMOVED));
}

function apply({ at, isOfNumbers, to }: Change, body: unknown): unknown {
  const isNumber = (place: readonly string[]) =>
    typeof place.reduce<any>((value, name) => value[name], body) === "number";
  const places = placesOf(body).filter((place) => !isOfNumbers || isNumber(place));
  if (places.length === 0) return body;
  const result = changed(body, places[at % places.length]!, to);
  return result === REMOVED ? undefined : result;
}

const nearMiss = fc.array(change, { minLength: 1, maxLength: 3 }).map((changes) => ({
  tell: (right: Said): Said => ({
    ...right,
    body: changes.reduce((body, one) => apply(one, body), right.body),
  }),
  words: changes.map(({ words }) => words).join(", "),
}));

const JSON_RPC_ERRORS = [
  -32700, -32600, -32601, -32602, -32603, -32002, -32003, -32004, -32007, -32015, 429, 0,
];

/** An answer that has nothing to do with the right one. */
const other = fc
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
        .map((code) => ({ jsonrpc: "2.0", id: 1, error: { code, message: "no" } })),
      fc
        .constantFrom("usage-capped", "credits", "invalid-request", "__proto__")
        .map((type) => ({ type: `x/${type}`, title: 1 })),
    ),
  })
  .map((said) => ({ tell: () => said, words: JSON.stringify(said) }));

/** Lies about the answers to these methods. */
export function lies(methods: readonly string[]): fc.Arbitrary<Lie> {
  return fc
    .record({
      method: fc.constantFrom(...methods),
      times: fc.constantFrom(1, 1, 2, 5, 1_000),
      isCarriedOut: fc.oneof({ arbitrary: fc.constant(true), weight: 4 }, fc.constant(false)),
      said: fc.oneof({ arbitrary: nearMiss, weight: 3 }, other),
    })
    .map(({ said, ...rest }) => ({ ...rest, ...said }));
}

/** What one case is told: the lies, and what came of them. */
export interface Ear {
  readonly socialUrl: string;
  readonly rpcUrl: string;
  /** What was said, by method. */
  readonly said: { readonly method: string; readonly body: unknown }[];
  /** From now on only the truth is told. */
  repent(): void;
}

/** Stands between gateways and the sandbox's servers, passes on what is asked, and lies to each gateway as it is told. */
export async function startLiar({ chainUrl, socialUrl }: { chainUrl: string; socialUrl: string }) {
  const ears = new Map<string, { left: { lie: Lie; times: number }[]; said: Ear["said"] }>();

  async function answer(path: string, body: string, authorization: string): Promise<Said> {
    const [, name = "", upstream, ...rest] = path.split("/");
    const ear = ears.get(name)!;
    const method = upstream === "chain" ? (JSON.parse(body) as { method: string }).method : "social";
    const entry = ear.left.find(({ lie, times }) => lie.method === method && times > 0);
    if (entry) entry.times--;
    const passOn = async (): Promise<Said> => {
      const response =
        upstream === "chain"
          ? await fetch(chainUrl, { method: "POST", body })
          : await fetch(`${socialUrl}/${rest.join("/")}`, { headers: { authorization } });
      const headers = { "content-type": response.headers.get("content-type") ?? "" };
      return { status: response.status, headers, body: await response.json() };
    };
    const isPassedOn = !entry || entry.lie.isCarriedOut || method !== "sendTransaction";
    const right = isPassedOn ? await passOn() : { status: 200, headers: {}, body: { result: "" } };
    const said = entry ? entry.lie.tell(right) : right;
    ear.said.push({ method, body: said.body });
    return said;
  }

  const server = createServer((request, response) => {
    // Its connection would keep all of a case's gateway in memory.
    response.shouldKeepAlive = false;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { url = "", headers } = request;
      answer(url, Buffer.concat(chunks).toString(), headers.authorization ?? "").then(
        ({ status, headers, body }) => {
          response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
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
    tell(told: readonly Lie[]): Ear {
      const name = String(ears.size);
      const left = told.map((lie) => ({ lie, times: lie.times }));
      const said: Ear["said"] = [];
      ears.set(name, { left, said });
      return {
        socialUrl: `${url}/${name}/social`,
        rpcUrl: `${url}/${name}/chain`,
        said,
        repent() {
          left.length = 0;
          said.length = 0;
        },
      };
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
