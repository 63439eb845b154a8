import fc from "fast-check";
import type { LoopbackRequest } from "../../src/sandbox/loopback-server.ts";

/*
 * GET /2/users/by and GET /2/users as the network's OpenAPI document describes them: openapi.json
 * of github.com/xdevplatform/docs, "X API v2" version 2.167, 22 August 2026. "2.159" marks what
 * only that version has (latest-openapi.json of github.com/xdevplatform/xdk); "page", what only the
 * page x-api/fundamentals/response-codes-and-errors of the same documentation has.
 */

/** The parameter of a call, which is also the name of its keys. */
export type By = "usernames" | "ids";

const LOOKUPS: Readonly<Record<string, { by: By; key: RegExp }>> = {
  "/2/users/by": { by: "usernames", key: /^[A-Za-z0-9_]{1,15}$/ },
  "/2/users": { by: "ids", key: /^[0-9]{1,19}$/ },
};
const MAX_KEYS = 100;
const USER_FIELDS = new Set(
  (
    "confirmed_email connection_status created_at description entities id is_identity_verified location name " +
    "parody profile_banner_url profile_image_url protected public_metrics receives_your_dm subscribes_to_you " +
    "subscription subscription_type url username verified verified_followers_count verified_type withheld"
  ).split(" "),
);

/** Whether the document allows a request. */
export function isDocumented({ method, url, headers }: LoopbackRequest): boolean {
  const lookup = LOOKUPS[url.pathname];
  if (method !== "GET" || !lookup || !headers.authorization?.startsWith("Bearer ")) return false;
  const keys = url.searchParams.get(lookup.by)?.split(",") ?? [];
  const fields = url.searchParams.get("user.fields")?.split(",") ?? [];
  return (
    keys.length >= 1 &&
    keys.length <= MAX_KEYS &&
    keys.every((key) => lookup.key.test(key)) &&
    new Set(fields).size === fields.length &&
    fields.every((field) => USER_FIELDS.has(field))
  );
}

/** The problems of a 200 that say why an account is not there, and the members that may name it. */
const MISSING: Readonly<Record<string, readonly string[]>> = {
  "resource-not-found": ["value", "resource_id"],
  "not-authorized-for-resource": ["value", "resource_id"],
  "resource-unavailable": ["resource_id"],
  "disallowed-resource": ["resource_id"],
};
/** The problems of a 200 that concern one field: the account is there. */
const OF_FIELDS = ["not-authorized-for-field", "field-unauthorized", "field-hydration-failure"];
/** The problems of a 200 that may name no account. */
const NAMELESS = ["internal-error", "invalid-request", ...Object.keys(MISSING)];

const text = fc.string();
const count = fc.maxSafeNat();
const accountId = fc.bigInt(1n, 10n ** 19n - 1n).map(String);
const unknownMembers = fc.dictionary(
  fc.constantFrom("extra", "__typename", "0"),
  fc.constantFrom<unknown>(null, true, 5, "text", [[]], { id: "1", username: "other" }),
  { maxKeys: 2 },
);

function problem(types: readonly string[], members: object = {}): fc.Arbitrary<object> {
  const type = fc
    .tuple(fc.constantFrom("x.com", "twitter.com" /* 2.159 */), fc.constantFrom(...types))
    .map(([host, name]) =>
      name === "about:blank" ? name : `https://api.${host}/2/problems/${name}`,
    );
  const known = fc.record(
    { type, title: text, detail: text, status: fc.nat(), section: fc.constant("data") },
    { requiredKeys: ["type", "title", "detail"] },
  );
  return fc
    .tuple(unknownMembers, known)
    .map((given) => Object.assign({}, ...given, members) as object);
}

interface Account {
  readonly id: string;
  readonly handle: string;
}

/** A user with `id` and `username`, which the document makes optional too: see `incomplete`. */
const userOf = ({ id, handle }: Account) =>
  fc
    .record(
      {
        unknownMembers,
        id: fc.constant(id),
        username: fc.mixedCase(fc.constant(handle)),
        name: text,
        verified: fc.boolean(),
        verified_type: fc.constantFrom("blue", "government", "business", "none"),
        profile_image_url: fc.webUrl(),
        public_metrics: fc.record({
          followers_count: count,
          following_count: count,
          post_count: count,
          listed_count: count,
          like_count: fc.option(count),
        }),
        created_at: fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
        description: text,
        protected: fc.boolean(),
        most_recent_post_id: accountId,
        entities: fc.constant({
          description: { mentions: [{ start: 0, end: 5, username: "other", id: null }] },
        }),
        withheld: fc.record({
          country_codes: fc.option(fc.array(text)),
          scope: fc.option(fc.constant("user")),
        }),
      },
      { requiredKeys: ["id", "username"] },
    )
    .map(({ unknownMembers: others, ...known }) => ({ ...others, ...known }));
type User = ReturnType<typeof userOf> extends fc.Arbitrary<infer T> ? T : never;

/** What a user says of its account. */
function toAccount({
  id,
  username,
  name,
  verified,
  public_metrics,
  profile_image_url,
}: User): object {
  const followers = public_metrics?.followers_count ?? Infinity;
  const pictureUrl = profile_image_url?.startsWith("https:")
    ? new URL(profile_image_url).href
    : null;
  return {
    id,
    handle: username,
    profile: {
      name: name ?? null,
      verified: verified ?? null,
      // GraphQL's Int has 32 bits.
      followers: followers < 2 ** 31 ? followers : null,
      pictureUrl,
    },
  };
}

/** What a 200 has for one key, and what it says of that key. */
interface Part {
  readonly data: readonly object[];
  readonly errors: readonly object[];
  readonly expected: object | "not-found" | "unreadable";
}

function partOf(key: string, by: By, account: Account): fc.Arbitrary<Part> {
  const user = userOf(account);
  const missing = fc.constantFrom(...Object.entries(MISSING)).chain(([type, members]) =>
    fc.subarray([...members], { minLength: 1 }).chain((names) =>
      problem([type], {
        ...Object.fromEntries(names.map((name) => [name, key])),
        // The document does not say whether a name's `resource_id` is that name or the id.
        ...(names.length === 2 && { resource_id: account.id }),
        resource_type: "user",
        parameter: by,
      }),
    ),
  );
  const named = { value: key, resource_id: key, resource_type: "user", field: "profile_image_url" };
  const part = (
    data: readonly object[],
    errors: readonly object[],
    expected: Part["expected"],
  ) => ({
    data,
    errors,
    expected,
  });
  const found = fc
    .tuple(user, fc.array(problem(OF_FIELDS, named), { maxLength: 2 }))
    .map(([one, errors]) => part([one], errors, toAccount(one)));
  const incomplete = fc
    .tuple(user, fc.constantFrom("id", "username"))
    .map(([{ ...one }, member]) => {
      Reflect.deleteProperty(one, member);
      return part([one], [], "unreadable");
    });
  return fc.oneof(
    { weight: 4, arbitrary: found },
    { weight: 3, arbitrary: missing.map((error) => part([], [error], "not-found")) },
    incomplete,
    fc.array(problem(NAMELESS), { maxLength: 1 }).map((errors) => part([], errors, "unreadable")),
    fc.tuple(user, user).map((both) => part(both, [], "unreadable")),
    fc.tuple(user, missing).map(([one, error]) => part([one], [error], "unreadable")),
  );
}

const accounts = fc.uniqueArray(
  fc.record({ id: accountId, handle: fc.stringMatching(/^[a-z0-9_]{1,15}$/) }),
  {
    minLength: 2,
    maxLength: MAX_KEYS + 1,
    comparator: (a, b) =>
      a.id === b.id || a.handle === b.handle || a.id === b.handle || a.handle === b.id,
  },
);

/** The body of a 200, and for each requested key what the body says of it. */
export const answers = fc
  .tuple(fc.constantFrom<By[]>("usernames", "ids"), accounts)
  .chain(([by, [stranger, ...requested]]) => {
    const keys = requested.map(({ id, handle }) => (by === "ids" ? id : handle));
    return fc.tuple(...requested.map((one, i) => partOf(keys[i]!, by, one))).chain((parts) => {
      const shuffled = (rows: object[]) => fc.shuffledSubarray(rows, { minLength: rows.length });
      const rowsOf = (name: "data" | "errors") => parts.flatMap((part) => part[name]);
      const other = { id: stranger!.id, username: stranger!.handle };
      return fc.record({
        by: fc.constant(by),
        expected: fc.constant(new Map(keys.map((key, i) => [key, parts[i]!.expected]))),
        unknownMembers,
        data: fc
          .constantFrom([], [other])
          .chain((others) => shuffled([...rowsOf("data"), ...others])),
        errors: shuffled(rowsOf("errors")),
        // Users that posts mention: never the requested ones.
        includes: fc.option(
          fc.constant({ users: keys.map((username) => ({ ...other, username })) }),
        ),
      });
    });
  })
  .map(({ by, expected, unknownMembers: others, data, errors, includes }) => ({
    by,
    expected,
    body: {
      ...others,
      ...(data.length > 0 && { data }),
      ...(errors.length > 0 && { errors }),
      ...(includes && { includes }),
    },
  }));

const FAILURES: readonly { status: number; types: string[]; kind: "refused" | "rate-limited" }[] = [
  { status: 400, types: ["invalid-request"], kind: "refused" },
  {
    status: 401,
    types: ["about:blank", "unsupported-authentication" /* 2.159 */],
    kind: "refused",
  },
  { status: 403, types: ["about:blank", "client-forbidden" /* 2.159 */], kind: "refused" },
  {
    status: 403,
    types: ["unsupported-authentication", "usage-capped" /* 2.159 */],
    kind: "refused",
  },
  { status: 404, types: ["about:blank", "resource-not-found"], kind: "refused" },
  { status: 429, types: ["about:blank", "rate-limit-exceeded" /* page */], kind: "rate-limited" },
  { status: 500, types: ["about:blank", "internal-error"], kind: "refused" },
  { status: 502, types: ["about:blank"], kind: "refused" },
  { status: 503, types: ["about:blank", "internal-error"], kind: "refused" },
  { status: 504, types: ["about:blank"], kind: "refused" },
];
const plainError = fc.record({ code: fc.integer(), message: text });

/** A failed call, with one of the two documented bodies, and the kind of failure that it is. */
export const failures = fc.oneof(
  fc.constantFrom(...FAILURES).chain(({ status, types, kind }) =>
    fc.record({
      status: fc.constant(status),
      kind: fc.constant(kind),
      body: fc.oneof(problem(types), plainError),
    }),
  ),
  problem(["usage-capped"]).map((body) => ({ status: 429, kind: "refused" as const, body })),
);
