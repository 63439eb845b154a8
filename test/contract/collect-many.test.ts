import { describe, expect } from "vitest";
import { newMint } from "../support/new-mint.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { startWorld } from "../support/world.ts";

const it = withWorld({ RATE_LIMIT_MAX: "120", RATE_LIMIT_WINDOW_SECONDS: 3_600 });

const QUERY =
  "mutation ($collects: [CollectInput!]!) { collectMany(collects: $collects) { success collected txSignature wallet { id } } }";
let callers = 0;
/** Each caller has its own rate limit and share of the fee budget. */
const newCaller = () => ({ "x-forwarded-for": `10.1.${callers++}.1` });
/** The variables for these ids, without coins. */
const toCollects = (ids: readonly string[]) => ({
  collects: ids.map((socialId) => ({ socialId })),
});
const toLiteral = (ids: readonly string[]) => `[${ids.map((id) => `{socialId: "${id}"}`).join()}]`;
const idOf = (handle: string) => world.account(handle).id;
const left = ({ headers }: { headers: Headers }) =>
  Number(/r=(\d+)/.exec(headers.get("ratelimit")!)![1]);

describe("collectMany", () => {
  it("collects every account and answers in the order of the entries", async () => {
    const ids = ["artist001", "artist002", "newcomer"].map(idOf);
    const { body } = await world.graphql(QUERY, toCollects(ids), newCaller());
    expect(body.errors).toBeUndefined();
    expect(body.data.collectMany).toMatchObject([
      { success: true, collected: "0.9924", wallet: { id: ids[0] } },
      { success: true, collected: "0.6105", wallet: { id: ids[1] } },
      { success: false, collected: "0.0000", txSignature: null, wallet: { id: ids[2] } },
    ]);
  });

  it.each(["the first time", "when the document is cached"])(
    "answers null with an error at the index for an id that fails, %s",
    async () => {
      const ids = ["x", idOf("newcomer"), "1".repeat(21), "x"];
      const { body } = await world.graphql(QUERY, toCollects(ids), newCaller());
      expect(body.data.collectMany).toMatchObject([null, { success: false }, null, null]);
      const errors = body.errors
        .map(({ path, extensions: { code, moved, socialId } }: any) => [
          ...[path.join("."), code, moved, socialId],
        ])
        .sort();
      expect(errors).toEqual([
        ["collectMany.0", "INVALID_SOCIAL_ID", "no", "x"],
        ["collectMany.2", "INVALID_SOCIAL_ID", "no", "1".repeat(21)],
        ["collectMany.3", "INVALID_SOCIAL_ID", "no", "x"],
      ]);
    },
  );

  it("shares a transaction between the accounts", async () => {
    const handles = ["artist004", "artist005", "artist006"];
    const { body } = await world.graphql(QUERY, toCollects(handles.map(idOf)), newCaller());
    const signatures = body.data.collectMany.map(({ txSignature }: any) => txSignature);
    expect(new Set(signatures).size).toBe(1);
    expect(world.sandbox.landedCollectsOf("artist004")).toHaveLength(1);
  });

  it("answers entries of one account with one result, and gives its amounts once", async () => {
    const id = idOf("artist003");
    const { body } = await world.graphql(QUERY, toCollects([id, `000${id}`, id]), newCaller());
    const [first, ...others] = body.data.collectMany;
    expect(first).toMatchObject({ success: true, collected: "41.0000" });
    const sameWithoutAmounts = { ...first, collected: "0.0000" };
    expect(others).toEqual([sameWithoutAmounts, sameWithoutAmounts]);
    expect(world.sandbox.landedCollectsOf("artist003")).toHaveLength(1);
  });

  it("collects the coins of each entry, and gives the amounts of entries with the same coins once", async () => {
    const { id, coins } = world.account("launcher");
    const [first, second] = coins.map(({ mint }) => mint);
    const other = world.account("variety");
    const collects = [
      { socialId: id, mints: [first, second] },
      { socialId: other.id, mints: [other.coins[0]!.mint] },
      { socialId: id, mints: [second, first, second] },
      { socialId: id, mints: ["nonsense"] },
      { socialId: `${other.id},${other.coins[0]!.mint}` },
    ];
    const { body } = await world.graphql(QUERY, { collects }, newCaller());
    expect(body.data.collectMany).toMatchObject([
      { success: true, collected: "8.7500" },
      { success: true, collected: "0.8500" },
      { success: true, collected: "0.0000" },
      null,
      null,
    ]);
    expect(body.errors).toMatchObject([
      { path: ["collectMany", 3], extensions: { code: "INVALID_MINT" } },
      { path: ["collectMany", 4], extensions: { code: "INVALID_SOCIAL_ID" } },
    ]);
    expect(world.sandbox.landedCollectsOf("launcher")).toHaveLength(1);
  });

  it("gives what remains of a coin once, in the first entry of the account that names it", async () => {
    const { id, coins } = world.account("prolific");
    const mints = coins.map(({ mint }) => mint);
    const half = mints.slice(0, 5);
    const { body } = await world.graphql(
      `mutation ($collects: [CollectInput!]!) {
        collectMany(collects: $collects) { txSignature collectedLamports remainingLamports }
      }`,
      {
        collects: [half, mints.slice(0, 10), half].map((named) => ({ socialId: id, mints: named })),
      },
      newCaller(),
    );
    expect(body.errors).toBeUndefined();
    const results = body.data.collectMany;
    const amounts = new Map<string, number>();
    for (const { txSignature, collectedLamports } of results)
      amounts.set(txSignature, (amounts.get(txSignature) ?? 0) + Number(collectedLamports));
    const { address } = world.account("prolific");
    for (const [signature, sum] of amounts) {
      const { message, preBalances, postBalances } = world.sandbox.chain.landed(signature)!;
      const i = message.staticAccounts.findIndex((key) => key === address);
      expect(sum).toBe(Number(postBalances[i]! - preBalances[i]!));
    }
    expect(results[2]).toMatchObject({ collectedLamports: "0", remainingLamports: "0" });
  });

  it("of more than 100 coins is refused, counted once for each entry", async () => {
    const ask = (last: string[]) => {
      const mints = Array.from({ length: 10 }, newMint);
      const collects = Array.from({ length: 10 }, (_, i) => ({ socialId: String(i + 1), mints }));
      const variables = { collects: [...collects, { socialId: "1", mints: last }], mints };
      const query = `mutation ($collects: [CollectInput!]!) {
        collectMany(collects: $collects) { success wallet { coins(mints: ${JSON.stringify(mints)}) { mint } } }
      }`;
      return world.graphql(last.length === 0 ? QUERY : query, variables, newCaller());
    };
    expect((await ask([])).status).toBe(200);
    const { status, body } = await ask([newMint()]);
    expect([status, body.errors[0].message]).toEqual([
      400,
      "Too many mints: the maximum is 100 per operation.",
    ]);
  });

  it.each([
    ["in a variable", (ids: string[]) => [QUERY, toCollects(ids)] as const],
    [
      "in the default of a variable",
      (ids: string[]) =>
        [
          `mutation ($collects: [CollectInput!]! = ${toLiteral(ids)}) { collectMany(collects: $collects) { success } }`,
          {},
        ] as const,
    ],
    [
      "in the document, beside a collect",
      ([first, ...ids]: string[]) =>
        [
          `mutation { collectMany(collects: ${toLiteral(ids)}) { success } collect(socialId: "${first}") { success } }`,
          {},
        ] as const,
    ],
  ])("costs one request for each entry %s", async (_, write) => {
    const caller = newCaller();
    const [query, variables] = write(Array(5).fill(idOf("newcomer")));
    const before = await world.graphql("{ __typename }", {}, caller);
    for (let i = 1; i <= 3; i++) {
      const { body, headers } = await world.graphql(query, variables, caller);
      expect(body.errors).toBeUndefined();
      expect(left(before) - left({ headers })).toBe(5 * i);
    }
  });

  it("of more than 100 entries is refused", async () => {
    const { status, body } = await world.graphql(
      QUERY,
      toCollects(Array(101).fill("1")),
      newCaller(),
    );
    expect(status).toBe(400);
    expect(body.errors[0]).toMatchObject({
      message: "Too many entries to collect: the maximum is 100 per operation.",
      extensions: { code: "BAD_REQUEST" },
    });
  });

  it.each(["application/json", "application/graphql-response+json"])(
    "of more entries than the rate limit is a bad request that counts as one, in %s",
    async (accept) => {
      const limited = await startWorld({ RATE_LIMIT_MAX: "20" });
      const ids = Array.from({ length: 21 }, (_, i) => String(i + 1));
      const caller = { ...newCaller(), accept };
      try {
        // Parsed, then cached.
        for (let i = 1; i <= 3; i++) {
          const { status, body, headers } = await limited.graphql(QUERY, toCollects(ids), caller);
          expect([status, headers.get("retry-after"), left({ headers })]).toEqual([
            400,
            null,
            20 - i,
          ]);
          expect(body.errors).toMatchObject([
            {
              message:
                "This request counts as 21 requests, and one request may count as at most 20. Split it.",
              extensions: { code: "BAD_REQUEST" },
            },
          ]);
        }
        const { body } = await limited.graphql(QUERY, toCollects(ids.slice(0, 16)), caller);
        expect(body.data.collectMany).toHaveLength(16);
      } finally {
        await limited.close();
      }
      expect(limited.chainCalls()).not.toContain("simulateTransaction");
    },
  );
});
