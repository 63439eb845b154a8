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

/** A text that graphql-jit, a compiler of documents, ran as code. */
const MAGIC_DATE = "__MAGIC_DATE__33a9e76d_02e0_4128_8e92_3530ad3da74d0)&&(process.version+'!'";

const HANDLES = [
  "creator",
  "CREATOR",
  "newcomer",
  "suspended",
  "nobody",
  "artist001",
  "",
  "@x",
  "a_b",
  "é",
  "1234567890123456",
  MAGIC_DATE,
];
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
      {
        maxLength: 3,
      },
    ),
  },
  first: { type: "Int", valid: fc.integer({ min: -1, max: 12 }) },
  after: { type: "String", valid: fc.constantFrom(null, "1".repeat(64), "", "0") },
  flag: { type: "Boolean!", valid: fc.boolean() },
};

type FieldsType = GraphQLObjectType | GraphQLInterfaceType;
const hasFields = (type: unknown) => isObjectType(type) || isInterfaceType(type);

const OTHER_TYPES = ["String", "Int!", "[String]", "Lamports", "Wallet!", "Nothing!"];

const rarely = <T>(usual: fc.Arbitrary<T>, rare: fc.Arbitrary<T>) =>
  fc.oneof({ arbitrary: usual, weight: 40 }, { arbitrary: rare, weight: 1 });

const literal = fc.oneof(
  fc.constantFrom(
    "null",
    "1",
    "-1.5e3",
    "true",
    "ENUM",
    "{}",
    "{a: {b: []}}",
    "[[]]",
    '""',
    "$nothing",
    '"""block"""',
  ),
  fc.string().map((text) => JSON.stringify(text)),
);

const directive = rarely(
  fc.constant(""),
  fc.constantFrom(
    " @skip(if: $flag)",
    " @include(if: true)",
    " @include(if: $flag) @skip(if: false)",
    " @skip",
    " @deprecated",
    " @nothing",
  ),
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
  const invalid = fc.oneof(
    literal.map((value) => `${name}: ${value}`),
    fc.constantFrom("", `${name}: $flag`, "nothing: 1", `${name}: "a", ${name}: "b"`),
  );
  return rarely(valid, invalid);
}

/** Generates selections on the types of a schema. Aliases end with `_` and the
 * field's name, or are names that every object has or that promises have. */
function createSelections() {
  function field(one: GraphQLField<unknown, unknown>, depth: number): fc.Arbitrary<string> {
    const type = getNamedType(one.type);
    const alias = fc.oneof(
      fc.constant(""),
      fc.constantFrom("a", "b", "__c").map((name) => `${name}_${one.name}: `),
      // Only on leaves, whose fields merge without conflict more often.
      fc.constantFrom(...(hasFields(type) ? [""] : ["then: ", "constructor: ", "__proto__: "])),
    );
    const args =
      one.args.length === 0
        ? fc.constant("")
        : fc
            .tuple(...one.args.map(argument))
            .map((given) => (given.join("") ? `(${given.join(", ")})` : ""));
    const below = rarely(
      hasFields(type) ? selection(type, depth + 1) : fc.constant(""),
      fc.constantFrom("", " { __typename }", " {}", " { nothing }"),
    );
    return fc
      .tuple(alias, args, directive, below)
      .map((parts) => parts[0] + one.name + parts.slice(1).join(""));
  }

  function selection(type: FieldsType, depth: number): fc.Arbitrary<string> {
    const fields = Object.values(type.getFields()).map((one) => field(one, depth));
    const own = [
      ...fields,
      fc.constantFrom("__typename", "a___typename: __typename"),
      ...(isInterfaceType(type)
        ? [fc.constantFrom("...OnWallet", "... on Wallet { address }", "...OnQuery")]
        : type.getInterfaces().map(({ name }) => fc.constant(`... on ${name} { __typename id }`))),
    ];
    const nested =
      depth > 3
        ? []
        : [
            fc
              .tuple(
                directive,
                fc.constantFrom(` on ${type.name}`, "", " on Query"),
                fc.constantFrom("__typename"),
              )
              .map(([given, on, inner]) => `...${on}${given} { ${inner} }`),
            fc.constantFrom(`...On${type.name}`, "...OnNothing"),
            fc.constantFrom(
              "__schema { queryType { name } }",
              '__type(name: "Wallet") { fields { name } }',
              "nothing",
            ),
          ];
    return fc
      .array(
        rarely(
          fc.oneof(...own),
          nested.length > 0 ? fc.oneof(...nested) : fc.constant("__typename"),
        ),
        {
          minLength: 1,
          maxLength: 5,
        },
      )
      .map((all) => ` { ${all.join(" ")} }`);
  }

  return selection;
}

/** A document with the operation, the fragments that it spreads and the variables that it uses. */
function toDocument({
  kind,
  name,
  selections,
  fragments,
  types,
}: {
  kind: string;
  name: string;
  selections: string;
  fragments: Record<string, string>;
  types: Record<string, string>;
}): string {
  let text = selections;
  for (const [type, body] of Object.entries(fragments))
    if (text.includes(`...On${type}`)) text += ` fragment On${type} on ${type}${body}`;
  const used = Object.keys(VARIABLES).filter((variable) =>
    new RegExp(`\\$${variable}\\b`).test(text),
  );
  const definitions = used.map((variable) => `$${variable}: ${types[variable]!}`).join(", ");
  return `${kind} ${name}${definitions && `(${definitions})`}${text}`;
}

/** Operations on the schema, most of which are valid. */
export function operations(schema: GraphQLSchema): fc.Arbitrary<Posted> {
  const selection = createSelections();
  const objects = Object.values(schema.getTypeMap()).filter(
    (type): type is FieldsType => hasFields(type) && !type.name.startsWith("__"),
  );
  const fragments = fc.record(
    Object.fromEntries(objects.map((type) => [type.name, selection(type, 3)])),
  );
  const types = fc.record(
    Object.fromEntries(
      Object.entries(VARIABLES).map(([variable, { type }]) => [
        variable,
        rarely(
          fc.constantFrom(type, /^[[BI]/.test(type) ? type : `${type} = "creator"`),
          fc.constantFrom(...OTHER_TYPES),
        ),
      ]),
    ),
  );
  const variables = fc.record(
    Object.fromEntries(
      Object.entries(VARIABLES).map(([variable, { valid }]) => [
        variable,
        rarely(valid, fc.jsonValue()),
      ]),
    ),
  );
  const document = (kind: string, root: GraphQLObjectType) =>
    fc
      .record({
        kind: fc.constant(kind),
        name: fc.constantFrom("", "One"),
        selections: selection(root, 0),
        fragments,
        types,
      })
      .map(toDocument);
  const query = rarely(
    fc.oneof(
      document("query", schema.getQueryType()!),
      document("mutation", schema.getMutationType()!),
    ),
    fc.oneof(
      document("subscription", schema.getQueryType()!),
      fc.constantFrom("{", "", "fragment F on Wallet { handle }"),
    ),
  );
  return fc
    .tuple(
      query,
      rarely(variables, fc.jsonValue() as fc.Arbitrary<any>),
      rarely(fc.constant(undefined), fc.jsonValue() as fc.Arbitrary<any>),
    )
    .map(([query, variables, operationName]) => ({
      query,
      variables,
      ...(operationName === undefined ? {} : { operationName }),
    }));
}
