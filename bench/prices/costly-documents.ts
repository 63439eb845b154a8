import fc from "fast-check";

/** A GraphQL request that is as large as the limits allow, in one or several ways. */
export interface CostlyRequest {
  readonly method: "GET" | "POST";
  readonly query: string;
  readonly variables: Readonly<Record<string, unknown>>;
  readonly operationName: string;
}

const MAX_DOCUMENT = 65_536;
const MAX_URL = 15_000;
/** A little below the limits, so that most documents are accepted. */
const FIELDS = 2_030;
const ALIASES = 198;
const SPREADS = 29_000;
const TOKENS = 5_800;

export const times = (count: number, write: (i: number) => string) =>
  Array.from({ length: Math.max(0, Math.floor(count)) }, (_, i) => write(i)).join(" ");

/** Of these, a wallet, its handle or its balance fails, or none of them. */
const SOCIAL_IDS = ["1523400000000000123", "18446744073709551615", "9223372036854775809", "7", "x"];
const HANDLES = ["creator", "nobody", "suspended", "bad-handle", "artist001", "x".repeat(120)];
const MINT = "9sNCV4cp83nGDikeqaS1GaaTfRJV3i5isSTM9HUV2jaM";
const LONG_MINTS = `[${times(10, (i) => `"${"m".repeat(120)}${i}"`)}]`;

/** Selections of a wallet, with their numbers of fields and of tokens. */
const SELECTIONS: readonly (readonly [text: string, fields: number, tokens: number])[] = [
  ["id", 1, 1],
  ["handle", 1, 1],
  ["socialId", 1, 1],
  ["address", 1, 1],
  ["__typename", 1, 1],
  ["profile { name verified followers pictureUrl }", 5, 7],
  ["profile { __typename }", 1, 4],
  ["derivation { program seeds bump }", 4, 6],
  ["balance { vault pda total withdrawable vaultLamports pdaLamports totalLamports }", 8, 10],
  [`balance(mints: ["${MINT}"]) { vault }`, 2, 11],
  [`coins(mints: ["${MINT}"]) { mint stage waiting amount reason }`, 6, 15],
  ['coins(mints: ["x"]) { mint }', 2, 11],
  [`coins(mints: ${LONG_MINTS}) { mint }`, 2, 20],
];

interface Room {
  readonly fields: number;
  readonly aliases: number;
  readonly spreads: number;
  readonly tokens: number;
  readonly characters: number;
}

const wallet = fc.record({
  selection: fc.nat(SELECTIONS.length - 1),
  /** Where the fields are: in the set, in one fragment, or one each in a chain of fragments. */
  place: fc.constantFrom("set", "set", "fragment", "chain", "width"),
  aliasLength: fc.constantFrom(0, 0, 1, 100, 120),
  directive: fc.constantFrom("", "", "", " @include(if: true)", " @skip(if: true)"),
  share: fc.constantFrom(1, 1, 1, 0.5, 0),
  hasHistory: fc.constantFrom(false, false, false, true),
});

/** Fields of a wallet that fill the room, and the fragments that they need. */
function fill(shape: typeof wallet extends fc.Arbitrary<infer Shape> ? Shape : never, room: Room) {
  const [text, fields, tokens] = SELECTIONS[shape.selection]!;
  const isAliased = shape.aliasLength > 0;
  const directives = shape.directive === "" ? 0 : 6;
  const characters = text.length + shape.aliasLength + shape.directive.length + 1;
  const most = Math.min(
    room.fields / fields,
    room.tokens / (tokens + directives + (isAliased ? 2 : 0)),
    room.characters / characters,
    isAliased ? room.aliases : Infinity,
    directives > 0 ? 190 : Infinity,
  );
  const alias = (i: number) => (isAliased ? `${"a".repeat(shape.aliasLength)}${i}: ` : "");
  const field = (i: number) => alias(i) + text + shape.directive;
  const count = Math.floor(shape.share * most);
  const history = shape.hasHistory ? "history(first: 0) { nodes { kind } }" : "";
  switch (shape.place) {
    case "set":
      return { fields: `${times(count, field)} id ${history}`, fragments: "" };
    case "fragment":
      return {
        fields: `...F id ${history}`,
        fragments: `fragment F on Wallet { ${times(count, field)} id }`,
      };
    case "chain": {
      const length = Math.floor(Math.min(room.spreads, room.tokens / (8 + tokens), 590, count));
      return {
        fields: "...C0 id",
        fragments: `${times(length, (i) => `fragment C${i} on Wallet { ${field(i)} ...C${i + 1} }`)} fragment C${length} on Wallet { id }`,
      };
    }
    case "width":
      return {
        fields: `${times(Math.min(room.spreads / 2, room.tokens / 2), () => "...W ...{ id }")} id`,
        fragments: `fragment W on Wallet { ${text} }`,
      };
  }
}

const KINDS = [
  ...["wallets", "walletsById", "wallets", "walletsById", "wallet", "walletById"],
  ...["node", "rateLimit", "collect", "collectMany", "introspection", "subscription"],
] as const;

const shapes = fc.record({
  method: fc.constantFrom("GET", "POST", "POST", "POST"),
  kind: fc.constantFrom(...KINDS),
  count: fc.constantFrom(1, 6, 50, 99, 100),
  value: fc.nat(5),
  isVariable: fc.boolean(),
  /** Whether the root field stands twice, so that its fields are merged. */
  isRepeated: fc.boolean(),
  rootAliasLength: fc.constantFrom(0, 1, 120),
  wallet,
  operations: fc.constantFrom(1, 1, 10),
  padding: fc.constantFrom("", "", "\n", ",", "#\n"),
  filler: fc.constantFrom(0, 0, 0, 40_000),
});

/**
 * Requests with one or ten operations, filled with names, literals, fragments, lines or variables.
 */
export const costlyRequests: fc.Arbitrary<CostlyRequest> = shapes.map((shape) => {
  const { kind, count, operations } = shape;
  const handle = HANDLES[shape.value % HANDLES.length]!;
  const id = SOCIAL_IDS[shape.value % SOCIAL_IDS.length]!;
  const isList = kind === "wallets" || kind === "walletsById" || kind === "collectMany";
  const roots = kind === "collect" ? 10 : kind === "subscription" ? 1 : count;
  /** How often the fields of a wallet stand in the document. */
  const copies = (isList ? (shape.isRepeated ? 2 : 1) : roots) * operations;
  const items = isList ? count * (shape.isRepeated ? 2 : 1) : roots;
  const value = kind === "wallet" || kind === "wallets" ? handle : id;
  const list = shape.isVariable ? "$a" : `[${times(count, () => `"${value}"`)}]`;
  const listTokens = shape.isVariable || !isList ? 0 : 5 * count * copies;
  const { fields, fragments } = fill(shape.wallet, {
    fields: FIELDS / items - 3,
    aliases: (ALIASES - (isList ? 2 : roots)) / (isList ? copies / operations : roots),
    spreads: SPREADS / copies,
    tokens: (TOKENS - listTokens) / copies - 12,
    characters:
      (MAX_DOCUMENT - (shape.isVariable ? 0 : count * (value.length + 3) * copies)) / copies -
      shape.rootAliasLength -
      60,
  });
  const alias = (i: number) => `${"r".repeat(shape.rootAliasLength)}w${i}: `;
  const selection = `{ ${fields} }`;
  const one = shape.isVariable ? "$b" : `"${value}"`;
  const repeated = (field: string) => (shape.isRepeated ? `${field} ${field}` : field);
  const entries = times(count, (i) => `{ socialId: "${i + 1}" }`);
  const texts: Readonly<Record<(typeof KINDS)[number], string>> = {
    wallets: repeated(`${alias(0)}wallets(handles: ${list}) ${selection}`),
    walletsById: repeated(`${alias(0)}walletsById(socialIds: ${list}) ${selection}`),
    wallet: times(roots, (i) => `${alias(i)}wallet(handle: ${one}) ${selection}`),
    walletById: times(roots, (i) => `${alias(i)}walletById(socialId: ${one}) ${selection}`),
    node: times(
      roots,
      (i) =>
        `${alias(i)}node(id: ${one}) { ... on Node { ${shape.isRepeated ? "id" : "__typename"} ... on Wallet ${selection} } }`,
    ),
    rateLimit: times(roots, (i) => `${alias(i)}rateLimit { limit remaining cost }`),
    collect: times(
      roots,
      (i) => `${alias(i)}collect(socialId: "${i + 1}") { wallet ${selection} }`,
    ),
    collectMany: `collectMany(collects: [${entries}]) { error wallet ${selection} }`,
    introspection: `__schema { types { ${times(count, (i) => `${alias(i)}description`)} fields { ${times(count, (i) => `f${i}: name`)} type { fields { name } } } } }`,
    subscription: `walletById(socialId: ${one}) ${selection}`,
  };
  const isMutation = kind === "collect" || kind === "collectMany";
  const type = isMutation ? "mutation" : kind === "subscription" ? "subscription" : "query";
  const body = texts[kind];
  const used = [
    ...(body.includes("$a") ? ["$a: [String!]!"] : []),
    ...(body.includes("$b") ? [kind === "node" ? "$b: ID!" : "$b: String!"] : []),
  ];
  const head = used.length > 0 ? `(${used.join(", ")})` : "";
  const definitions = times(operations, (i) => `${type} Q${i}${head} { ${body} }`);
  const isUsed = /\.\.\.[FCW]/.test(body);
  const text = isUsed ? `${definitions} ${fragments}` : definitions;
  const method = text.length > MAX_URL / 2 ? "POST" : shape.method;
  const room = (method === "GET" ? MAX_URL / 3 : MAX_DOCUMENT) - text.length - 12;
  const padding = shape.padding.repeat(Math.max(0, room / Math.max(1, shape.padding.length)));
  return {
    method,
    query: shape.padding === "" ? text : text.replace("{", `{${padding}`),
    variables: {
      a: new Array<string>(count).fill(value),
      b: method === "POST" && shape.filler > 0 ? "x".repeat(shape.filler / 2) : value,
    },
    operationName: "Q0",
  };
});
