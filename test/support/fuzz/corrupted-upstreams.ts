import fc from "fast-check";
import { createLoopbackServer, type LoopbackServer } from "../../../src/sandbox/loopback-server.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";

/** An answer of an upstream; a string body is sent as it is, any other as JSON. */
interface UpstreamAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
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
}

/** Corrupts the next `times` answers to a method: changes them, or replaces them by another. */
export interface Corruption {
  readonly method: string;
  readonly times: number;
  /** Whether the chain receives a `sendTransaction` whose answer is corrupted. */
  readonly isForwarded: boolean;
  readonly answer: readonly Change[] | UpstreamAnswer;
}

const REMOVED = Symbol("removed");

const changesOfAny = fc.oneof(
  fc.constantFrom<Change["replace"][]>(
    () => REMOVED,
    () => null,
    String,
    Number,
    (value) => String(value).toUpperCase(),
    (value) => `0${value}`,
    (value) => `${value} `,
    // The Kelvin sign becomes k in lower case.
    (value) => String(value).replace(/k/i, "\u212A"),
    () => "",
    () => [],
    () => ({}),
    (value) => !value,
    (value) => (Array.isArray(value) ? [...value, ...value] : [value, value]),
    (value) => (Array.isArray(value) ? value.toReversed() : value),
    (value) => (Array.isArray(value) ? value.slice(0, 1) : value),
    (value) => (Array.isArray(value) ? [...value, value[0]] : value),
    (value) => (Array.isArray(value) ? ["//////////8=", "base64"] : value),
    () => ({ InstructionError: [0, { Custom: 1 }] }),
    () => "InsufficientFundsForFee",
    () => ({ InsufficientFundsForRent: { account_index: 0 } }),
    () => ({ slot: 1, err: null, confirmations: null, confirmationStatus: "finalized" }),
  ),
  fc.jsonValue().map((value) => () => value),
);
const changesOfNumbers = fc.constantFrom<Change["replace"][]>(
  (value) => -value,
  (value) => Number(value) + 1,
  (value) => value - 1,
  () => 2 ** 53,
  () => 2 ** 53 - 1,
  () => 1e15,
  () => 1e308,
  () => 0,
  () => 0.5,
  String,
);
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ at: fc.nat(200), replace: changesOfAny, numbersOnly: fc.constant(false) }),
  fc.record({ at: fc.nat(200), replace: changesOfNumbers, numbersOnly: fc.constant(true) }),
);

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

function apply(body: unknown, { at, numbersOnly, replace }: Change): unknown {
  const isNumber = (path: readonly string[]) =>
    typeof path.reduce<any>((value, name) => value[name], body) === "number";
  const paths = pathsOf(body).filter((path) => !numbersOnly || isNumber(path));
  if (paths.length === 0) return body;
  const result = replaceAt(body, paths[at % paths.length]!, replace);
  return result === REMOVED ? undefined : result;
}

const JSON_RPC_ERRORS = [
  -32700, -32600, -32601, -32602, -32603, -32002, -32003, -32004, -32007, -32015, 429, 0,
];

/** An answer that is unrelated to the original. */
const unrelatedAnswer: fc.Arbitrary<UpstreamAnswer> = fc.record({
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
});

/** Corruptions of the answers to these methods. */
export const corruptions = (methods: readonly string[]): fc.Arbitrary<Corruption> =>
  fc.record({
    method: fc.constantFrom(...methods),
    times: fc.constantFrom(1, 1, 2, 5, 1_000),
    isForwarded: fc.oneof({ arbitrary: fc.constant(true), weight: 4 }, fc.constant(false)),
    answer: fc.oneof(
      { arbitrary: fc.array(change, { minLength: 1, maxLength: 3 }), weight: 3 },
      unrelatedAnswer,
    ),
  });

/** Starts a network and a chain endpoint that corrupt the sandbox's answers. */
export async function startCorruptedUpstreams(
  { rpc, social }: Pick<Sandbox, "rpc" | "social">,
  applied: readonly Corruption[],
) {
  const left = applied.map((corruption) => ({ ...corruption }));
  /** The answers so far, corrupted or not. */
  const answers: { readonly method: string; readonly body: unknown }[] = [];

  const start = ({ handle }: LoopbackServer, methodOf: (body: string) => string) =>
    createLoopbackServer({
      port: 0,
      async handle(request) {
        const method = methodOf(request.body);
        const corruption = left.find((each) => each.method === method && each.times > 0);
        if (corruption) corruption.times--;
        const isForwarded = corruption?.isForwarded !== false || method !== "sendTransaction";
        const truth = isForwarded ? await handle(request) : { status: 200, body: '{"result":""}' };
        const original: UpstreamAnswer = { ...truth, body: JSON.parse(truth.body) };
        const { answer = [] } = corruption ?? {};
        const { body, ...rest } =
          "status" in answer ? answer : { ...original, body: answer.reduce(apply, original.body) };
        answers.push({ method, body });
        const json = JSON.stringify(body) as string | undefined;
        return { ...rest, body: typeof body === "string" ? body : (json ?? "") };
      },
    });
  const servers = [
    await start(rpc, (body) => (JSON.parse(body) as { method: string }).method),
    await start(social, () => "social"),
  ] as const;
  const [rpcUrl, socialUrl] = servers.map(({ url }) => url) as [string, string];

  return {
    ...{ rpcUrl, socialUrl, answers },
    /** Returns all further answers unchanged, and empties `answers`. */
    stopCorrupting(): void {
      left.length = 0;
      answers.length = 0;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}
