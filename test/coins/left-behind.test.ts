import { describe, expect } from "vitest";
import { curveOf } from "../support/launchpad-instructions.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { chain, withNewWorld, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;

const it = withNewWorld({ RATE_LIMIT_MAX: "1000" });

type Coin = Parameters<World["sandbox"]["coins"]["launch"]>[0];

/** A new coin of the account on which fees wait, a SOL by default. */
function launch(handle: string, coin: Partial<Coin> = {}): string {
  const mint = newMint();
  const { address } = world.account(handle);
  world.sandbox.coins.launch({ mint, creator: address, fees: SOL, ...coin });
  return mint;
}
/** A new coin whose sweep fails: its curve holds less than its fees. */
function launchFailing(handle: string, fees = 7n * SOL): string {
  const mint = launch(handle, { fees });
  chain.setAccount(curveOf(mint), { ...chain.account(curveOf(mint))!, lamports: 3n * SOL });
  return mint;
}
const share = (handle: string, other: string) =>
  launch(handle, {
    shareholders: [
      { address: world.account(handle).address, bps: 5_000 },
      { address: other, bps: 5_000 },
    ],
  });
const mintsOf = (handle: string) => world.account(handle).coins.map(({ mint }) => mint);
const collect = async (handle: string, mints: readonly string[] = [], minimum?: string) =>
  (await world.post("/collect", { socialId: world.account(handle).id, mints, minimum })).body;
const entry = (mint: string | null, amount: string, lamports: bigint, reason: string) => ({
  ...{ mint, amount, lamports: String(lamports), reason },
});
const NOWHERE = { amount: null, lamports: null };

describe("a collect says what it left behind, and why:", () => {
  it("BELOW_MINIMUM, if it would move less than the caller's minimum", async () => {
    const [mint] = mintsOf("launcher");
    expect(await collect("launcher", [mint!], "6.3")).toMatchObject({
      error: "NOTHING_TO_COLLECT",
      remaining: "0.0000",
      left: [
        entry(null, "1.2500", (5n * SOL) / 4n, "BELOW_MINIMUM"),
        entry(mint!, "5.0000", 5n * SOL, "BELOW_MINIMUM"),
      ],
    });
  });

  it("FAILED, if a coin fails the simulation, also when nothing else is left", async () => {
    const mint = launchFailing("creator");
    const left = [entry(mint, "7.0000", 7n * SOL, "FAILED")];
    expect(await collect("creator", [mint])).toMatchObject({
      ...{ success: true, collected: "3.1000", remaining: "0.0000", left },
    });
    expect(await collect("creator", [mint])).toMatchObject({
      ...{ success: false, error: "COLLECT_FAILED", moved: "no", left },
    });
    const query = `mutation ($mints: [String!]) {
      collect(socialId: "${world.account("creator").id}", mints: $mints) { success }
    }`;
    const { body } = await world.graphql(query, { mints: [mint] });
    expect(body.errors[0].extensions).toMatchObject({ code: "COLLECT_FAILED", moved: "no", left });
  });

  it("BACKING_OFF, once its transaction has failed on the chain", async () => {
    const { address, creatorVault } = world.account("creator");
    const account = chain.account(address)!;
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 500_000n);
    onNext(world.sandbox.rpc, isMethod("sendTransaction"), () => {
      chain.setBalance(address, 0n);
    });
    const failed = await collect("creator");
    const [landed] = world.sandbox.landedCollects();
    expect(failed).toMatchObject({
      ...{ moved: "no", txSignature: landed!.signature, retryAfterSeconds: 60 },
      left: [entry(null, "0.0005", 500_000n, "BACKING_OFF")],
    });
    chain.setAccount(address, account);
    const again = await collect("creator");
    expect(again).toMatchObject({
      ...{ moved: "no", left: [entry(null, "0.0005", 500_000n, "BACKING_OFF")] },
    });
    expect(again.retryAfterSeconds).toBeLessThanOrEqual(60);
    expect(again).not.toHaveProperty("txSignature");
  });

  it("NO_ROOM, if another collect moves it: what `remaining` adds up", async () => {
    const shared = share("creator", world.account("artist001").address);
    const mints = [...Array.from({ length: 9 }, () => launch("creator")), shared];
    const body = await collect("creator", mints);
    expect(body.success).toBe(true);
    expect(body.left).toContainEqual(entry(shared, "0.5000", SOL / 2n, "NO_ROOM"));
    for (const { reason } of body.left) expect(reason).toBe("NO_ROOM");
    const sum = body.left.reduce((total: number, { lamports }: any) => total + Number(lamports), 0);
    expect(body.remaining).toBe((sum / 1e9).toFixed(4));
  });

  it("a coin's reason, if it can never be collected, or not yet", async () => {
    const cashback = launch("creator", { kind: "cashback" });
    const usd = launch("creator", { quoteMint: newMint() });
    const stranger = launch("artist001");
    const empty = launch("creator", { fees: 0n });
    const tiny = launch("creator", { fees: 0n });
    world.sandbox.coins.migrate(tiny, 1_000n);
    const unknown = newMint();
    const body = await collect("creator", [cashback, usd, stranger, empty, tiny, unknown]);
    expect(body).toMatchObject({ success: true, collected: "3.1000" });
    expect(body.left).toEqual([
      entry(cashback, "1.0000", SOL, "CASHBACK"),
      { mint: usd, ...NOWHERE, reason: "OTHER_CURRENCY" },
      entry(stranger, "1.0000", SOL, "OTHER_CREATOR"),
      entry(tiny, "0.0000", 1_000n, "RENT_TOO_HIGH"),
      { mint: unknown, ...NOWHERE, reason: "NO_SUCH_COIN" },
    ]);
  });

  it("once, in the first entry of a `collectMany` that names it", async () => {
    const { id } = world.account("creator");
    const mint = launch("creator", { kind: "cashback" });
    const { body } = await world.graphql(
      "mutation ($c: [CollectInput!]!) { collectMany(collects: $c) { left { mint lamports reason } } }",
      { c: [[mint], [mint, mint]].map((mints) => ({ socialId: id, mints })) },
    );
    const left = [{ mint, lamports: String(SOL), reason: "CASHBACK" }];
    expect(body.data.collectMany).toEqual([{ left }, { left: [] }]);
  });
});
