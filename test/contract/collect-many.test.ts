import { describe, expect } from "vitest";
import { withWorld, world } from "../support/fixtures.ts";

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
const idOf = (handle: string) => world.account(handle).id;

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

  it("answers null with an error at the index for an id that fails", async () => {
    const ids = ["x", idOf("newcomer"), "1".repeat(21)];
    const { body } = await world.graphql(QUERY, toCollects(ids), newCaller());
    expect(body.data.collectMany).toMatchObject([null, { success: false }, null]);
    const errors = body.errors.map(({ path, extensions: { code, moved, socialId } }: any) => [
      ...[path.join("."), code, moved, socialId],
    ]);
    expect(errors.sort()).toEqual([
      ["collectMany.0", "INVALID_SOCIAL_ID", "no", "x"],
      ["collectMany.2", "INVALID_SOCIAL_ID", "no", "1".repeat(21)],
    ]);
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
});
