import fc from "fast-check";
import {
  getNamedType,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  isInterfaceType,
  isObjectType,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLSchema,
} from "graphql";

/** The JSON body of a GraphQL request. */
export interface Posted {
  readonly query: string;
  readonly variables?: unknown;
  readonly operationName?: unknown;
}

const HANDLES = ["creator", "CREATOR", "newcomer", "nobody", "", "@x", "a_b", "é"];
/** Ids with empty vaults, so that a collect ends before any transaction, and invalid ids. */
const IDS = ["0", "7", "007", "18446744073709551615", "18446744073709551616", "", "x", "-1", "1.0"];

/** A coin of the sandbox, a mint without a coin, and what is no mint. */
const MINTS = [
  "BsZgJaxMAUbfUHZ3wbFEEXCUWwRhZvYHYMRCCpEsxi2Y",
  "So11111111111111111111111111111111111111112",
  "",
  "nonsense",
];

const minimum = fc.constantFrom(null, "", "0", "0.5", "1000", "0,5");
const mints = fc.array(fc.constantFrom(...MINTS), { maxLength: 12 });
/** The variables that documents use, with their types and valid values. */
const VARIABLES: Record<string, { type: string; valid: fc.Arbitrary<unknown> }> = {
  handle: { type: "String!", valid: fc.constantFrom(...HANDLES) },
  handles: { type: "[String!]!", valid: fc.array(fc.constantFrom(...HANDLES), { maxLength: 5 }) },
  mints: { type: "[String!]!", valid: mints },
  socialId: { type: "String!", valid: fc.constantFrom(...IDS) },
  id: { type: "ID!", valid: fc.constantFrom<unknown>(...IDS, 7, 2 ** 64) },
  minimum: { type: "String", valid: minimum },
  address: { type: "String", valid: fc.constantFrom(null, "", "11111111111111111111111111111111") },
  socialIds: { type: "[String!]!", valid: fc.array(fc.constantFrom(...IDS), { maxLength: 5 }) },
  collects: {
    type: "[CollectInput!]!",
    valid: fc.array(
      fc.record(
        { socialId: fc.constantFrom(...IDS), mints, minimum },
        { requiredKeys: ["socialId"] },
      ),
      { maxLength: 3 },
    ),
  },
  first: { type: "Int", valid: fc.integer({ min: -1, max: 12 }) },
  after: { type: "String", valid: fc.constantFrom(null, "1".repeat(64), "", "0") },
  flag: { type: "Boolean!", valid: fc.boolean() },
};

type FieldsType = GraphQLObjectType | GraphQLInterfaceType;
const hasFields = (type: unknown) => isObjectType(type) || isInterfaceType(type);

const rarely = <T>(usual: fc.Arbitrary<T>, rare: fc.Arbitrary<T>) =>
  fc.oneof({ arbitrary: usual, weight: 40 }, { arbitrary: rare, weight: 1 });

const directive = rarely(
  fc.constant(""),
  fc.constantFrom(" @skip(if: $flag)", " @include(if: $flag) @skip(if: false)", " @nothing"),
);

/** As JSON, but for the names of members. */
const toLiteral = (value: unknown) =>
  JSON.stringify(value).replace(/"(socialId|mints|minimum|address)":/g, "$1:");

function argument({ name }: GraphQLArgument): fc.Arbitrary<string> {
  const { valid: values } = VARIABLES[name]!;
  const valid = fc.oneof(
    values.map((value) => `${name}: ${toLiteral(value)}`),
    fc.constant(`${name}: $${name}`),
  );
  const invalid = fc.constantFrom("", `${name}: {a: [null]}`, `${name}: $flag`, "nothing: 1");
  return rarely(valid, invalid);
}

/**
 * Aliases end with `_` and the field's name, or are names that every object has or that promises
 * have.
 */
function field(one: GraphQLField<unknown, unknown>, depth: number): fc.Arbitrary<string> {
  const type = getNamedType(one.type);
  const alias = fc.constantFrom(
    "",
    `a_${one.name}: `,
    // Only on leaves, whose fields merge without conflict more often.
    ...(hasFields(type) ? [] : ["then: ", "__proto__: "]),
  );
  const args = fc
    .tuple(...one.args.map(argument))
    .map((given) => (given.join("") ? `(${given.join(", ")})` : ""));
  const below = rarely(
    hasFields(type) ? selection(type, depth + 1) : fc.constant(""),
    fc.constant(" { nothing }"),
  );
  return fc
    .tuple(alias, fc.constant(one.name), args, directive, below)
    .map((parts) => parts.join(""));
}

function selection(type: FieldsType, depth: number): fc.Arbitrary<string> {
  const fields = Object.values(type.getFields()).map((one) => field(one, depth));
  const fragments = [type, ...type.getInterfaces()].flatMap(({ name }) => [
    `...On${name}`,
    `... on ${name} @include(if: $flag) { __typename }`,
  ]);
  if (isInterfaceType(type)) fragments.push("...OnWallet");
  const others = fc.constantFrom("__typename", "nothing", ...(depth > 3 ? [] : fragments));
  return fc
    .array(rarely(fc.oneof(...fields), others), { minLength: 1, maxLength: 5 })
    .map((all) => ` { ${all.join(" ")} }`);
}

/** The operation with the fragments that it spreads and the variables that it uses. */
function toDocument(operation: string, selections: string, fragments: Record<string, string>) {
  let text = selections;
  for (const [type, body] of Object.entries(fragments))
    if (text.includes(`...On${type}`)) text += ` fragment On${type} on ${type}${body}`;
  const used = Object.entries(VARIABLES).filter(([name]) => new RegExp(`\\$${name}\\b`).test(text));
  const definitions = used.map(([name, { type }]) => `$${name}: ${type}`).join(", ");
  return `${operation}${definitions && `(${definitions})`}${text}`;
}

/** Operations on the schema, most of which are valid. */
export function operations(schema: GraphQLSchema): fc.Arbitrary<Posted> {
  const types = Object.values(schema.getTypeMap()).filter(
    (type): type is FieldsType => hasFields(type) && !type.name.startsWith("__"),
  );
  const fragments = fc.record(
    Object.fromEntries(types.map((type) => [type.name, selection(type, 4)])),
  );
  const document = (operation: string, root: GraphQLObjectType) =>
    fc
      .tuple(fc.constant(operation), selection(root, 0), fragments)
      .map((parts) => toDocument(...parts));
  const query = rarely(
    fc.oneof(
      document("query One", schema.getQueryType()!),
      document("mutation One", schema.getMutationType()!),
    ),
    fc.oneof(
      document("subscription One", schema.getQueryType()!),
      fc.constantFrom("{", "", "fragment F on Wallet { handle }"),
    ),
  );
  const variables = fc.record(
    Object.fromEntries(
      Object.entries(VARIABLES).map(([name, { valid }]) => [name, rarely(valid, fc.jsonValue())]),
    ),
  );
  return fc.record(
    {
      query,
      variables: rarely<unknown>(variables, fc.jsonValue()),
      operationName: rarely<unknown>(fc.constant("One"), fc.jsonValue()),
    },
    { requiredKeys: ["query"] },
  );
}
