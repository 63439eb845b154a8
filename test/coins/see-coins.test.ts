import { describe, expect } from "vitest";
import { setWrappedSol } from "../../src/sandbox/chain/accounts.ts";
import { WSOL } from "../support/launchpad-instructions.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod } from "../support/sandbox.ts";
import { chain, it, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";

const USDC = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

const mintsOf = (handle: string) => world.account(handle).coins.map(({ mint }) => mint);
const lookup = (handle: string, mints: readonly string[]) =>
  world.request(`/wallet/lookup?handle=${handle}${mints.map((mint) => `&mint=${mint}`).join("")}`);
const see = async (handle: string, mints: readonly string[]) => (await lookup(handle, mints)).body;
const accountReads = () => world.sandbox.rpc.calls.filter(isMethod("getMultipleAccounts"));

/** Launches a coin for `creator`, with fees on its curve. */
function launch(
  creator: string,
  coin: Partial<Parameters<World["sandbox"]["coins"]["launch"]>[0]> = {},
) {
  const mint = newMint();
  world.sandbox.coins.launch({ mint, creator, ...coin });
  return mint;
}

describe("a lookup that names a coin", () => {
  it("shows what waits on its curve, and counts it in the vault", async () => {
    const [curveCoin] = mintsOf("launcher");
    const plain = (await world.lookup("launcher")).body;
    expect(plain.balance).toMatchObject({
      vault: "1.2500",
      pda: "1.5000",
      total: "2.7500",
      withdrawable: "2.6950",
    });
    expect(await see("launcher", [curveCoin!])).toEqual({
      ...plain,
      balance: {
        ...{ vault: "6.2500", pda: "1.5000", total: "7.7500", withdrawable: "7.5950" },
        lamports: expect.objectContaining({ vault: "6250000000" }),
      },
      coins: [
        {
          mint: curveCoin,
          stage: "CURVE",
          waiting: "5.0000",
          amount: "5000000000",
          quoteMint: WSOL,
          shareBps: 10_000,
          collectable: true,
          reason: null,
        },
      ],
    });
  });

  it("has an entry for each place in which its fees wait, in the order of the mints", async () => {
    const [curveCoin, poolCoin, both] = mintsOf("launcher");
    const { balance, coins } = await see("launcher", [both!, poolCoin!, curveCoin!]);
    expect(coins.map(({ mint, stage, waiting }: any) => [mint, stage, waiting])).toEqual([
      [both, "CURVE", "0.3000"],
      [both, "POOL", "0.7000"],
      [poolCoin, "POOL", "2.5000"],
      [curveCoin, "CURVE", "5.0000"],
    ]);
    expect(balance.vault).toBe("9.7500");
  });

  it("counts a coin once that it names twice", async () => {
    const [curveCoin] = mintsOf("launcher");
    const { balance, coins } = await see("launcher", [curveCoin!, curveCoin!]);
    expect([balance.vault, coins.length]).toEqual(["6.2500", 1]);
  });

  it("counts an empty `mint` or `mints` as absent", async () => {
    const plain = (await world.lookup("launcher")).body;
    for (const query of ["&mint=", "&mints=", "&mint=&mints=&mint="])
      expect((await world.request(`/wallet/lookup?handle=launcher${query}`)).body).toEqual(plain);
    const { id } = world.account("launcher");
    const query = `{ walletById(socialId: "${id}") { coins(mints: [""]) { mint } } }`;
    expect((await world.graphql(query)).body.errors[0].extensions.code).toBe("INVALID_MINT");
  });

  it("shows coins that never pay the address with the reason, and does not count them", async () => {
    const [sol, usdc, shared] = mintsOf("variety");
    const unknown = newMint();
    const mints = [usdc!, shared!, unknown];
    const { balance, coins } = await see("variety", mints);
    expect(balance.vault).toBe("0.4000");
    const ofShared = { mint: shared, quoteMint: WSOL, shareBps: 0, reason: "SHARED" };
    const expected = [
      {
        ...{ mint: usdc, stage: "CURVE", quoteMint: USDC, shareBps: 10_000 },
        ...{ waiting: null, amount: "120500000", reason: "OTHER_CURRENCY" },
      },
      { ...ofShared, stage: "CURVE", waiting: "0.6000", amount: "600000000" },
      { ...ofShared, stage: "POOL", waiting: "0.4000", amount: "400000000" },
      {
        ...{ mint: unknown, stage: null, quoteMint: null, shareBps: 0 },
        ...{ waiting: null, amount: null, reason: "NO_SUCH_COIN" },
      },
    ];
    expect(coins).toEqual(expected.map((coin) => ({ ...coin, collectable: false })));
    expect((await see("variety", [sol!, ...mints])).balance.vault).toBe("0.8500");
  });
});

it("fees in pools count unless they are dust", async () => {
  const { address } = world.account("graduate");
  setWrappedSol(chain, world.account("graduate").ammVaultAuthority, 0n);
  const mint = launch(address);
  world.sandbox.coins.migrate(mint, 4_999n);
  const tooLittle = await see("graduate", [mint]);
  expect(tooLittle.coins).toMatchObject([
    { stage: "POOL", collectable: false, reason: "BELOW_AMM_MINIMUM" },
  ]);
  expect(tooLittle.balance.vault).toBe("1.0000");
  world.sandbox.coins.addFees(mint, 395_001n);
  const enough = await see("graduate", [mint]);
  expect(enough.coins).toMatchObject([{ collectable: true, reason: null }]);
  expect(enough.balance.vault).toBe("1.0004");
});

describe("within one operation", () => {
  it("the same wallet with different coins has a balance for each", async () => {
    const [curveCoin, poolCoin] = mintsOf("launcher");
    const { id } = world.account("launcher");
    world.forgetCalls();
    const { body } = await world.graphql(
      `query ($one: [String!]!) {
        none: wallet(handle: "launcher") { balance { vault } coins(mints: []) { mint } }
        one: wallet(handle: "launcher") { balance(mints: $one) { vault } coins(mints: $one) { mint } }
        two: walletById(socialId: "${id}") {
          balance(mints: ["${curveCoin}", "${poolCoin}"]) { vault }
          coins(mints: ["${poolCoin}", "${curveCoin}"]) { mint }
        }
        again: wallet(handle: "LAUNCHER") { balance(mints: ["${curveCoin}"]) { vault } }
      }`,
      { one: [curveCoin] },
    );
    const { none, one, two, again } = body.data;
    expect([none, one, two, again].map(({ balance }: any) => balance.vault)).toEqual([
      "1.2500",
      "6.2500",
      "8.7500",
      "6.2500",
    ]);
    expect([none, one, two].map(({ coins }: any) => coins.map(({ mint }: any) => mint))).toEqual([
      [],
      [curveCoin],
      [poolCoin, curveCoin],
    ]);
    expect(accountReads()).toHaveLength(1);
    expect(new Set(accountReads()[0]!.params[0] as string[]).size).toBe(5 + 2 * 5);
  });
});

describe("INVALID_MINT", () => {
  const many = (count: number) => Array.from({ length: count }, newMint);

  it.each([
    [
      [WSOL, "nonsense"],
      'A mint must be a Solana address: 32 bytes in base58. Received "nonsense".',
    ],
    [many(11), "At most 10 mints are allowed. Received 11."],
  ])("refuses malformed and too many mints before any read: %#", async (mints, message) => {
    world.forgetCalls();
    const { status, body } = await lookup("nobody", mints);
    expect([status, body]).toEqual([400, { error: "INVALID_MINT", message }]);
    const fields = "address balance(mints: $mints) { vault } coins(mints: $mints) { mint }";
    const answer = await world.graphql(
      `query ($mints: [String!]!) { walletById(socialId: "7") { ${fields} } }`,
      { mints },
    );
    expect([answer.status, answer.body.data.walletById.address]).toEqual([200, expect.any(String)]);
    const error = { message, extensions: { code: "INVALID_MINT" } };
    expect(answer.body.errors).toMatchObject([error, error]);
    expect([world.chainCalls(), world.sandbox.social.calls]).toEqual([[], []]);
  });

  it("is the error of a wallet for which an operation names more than 19 coins, in all its fields", async () => {
    const { id } = world.account("launcher");
    const ask = (count: number) => {
      const [first, second, third, fourth] = Array.from({ length: 4 }, (_, i) =>
        JSON.stringify(many(Math.max(0, Math.min(10, count - 10 * i)))),
      );
      return world.graphql(`{
        a: walletById(socialId: "${id}") { address one: balance(mints: ${first}) { vault } coins(mints: ${second}) { mint } }
        b: walletById(socialId: "${id}") { two: balance(mints: ${third}) { vault } three: balance(mints: ${fourth}) { vault } }
        other: wallet(handle: "creator") { balance { vault } }
      }`);
    };
    world.forgetCalls();
    expect((await ask(19)).body.errors).toBeUndefined();
    expect(accountReads().map(({ params }) => (params[0] as string[]).length)).toEqual([100, 5]);
    world.forgetCalls();
    const { status, body } = await ask(20);
    expect([status, body.data.other, body.data.a.address]).toEqual([
      200,
      { balance: { vault: "3.1000" } },
      world.account("launcher").address,
    ]);
    const message = "At most 19 mints are allowed for one wallet. Received 20.";
    expect(body.errors).toMatchObject(
      Array(4).fill({ message, extensions: { code: "INVALID_MINT" } }),
    );
    expect(accountReads()).toHaveLength(1);
  });

  it("counts the mints once for each wallet of a list", async () => {
    const ask = (wallets: number) =>
      world.graphql(
        `query ($handles: [String!]!, $mints: [String!]!) {
          wallets(handles: $handles) { balance(mints: $mints) { vault } coins(mints: $mints) { mint } }
        }`,
        { handles: Array.from({ length: wallets }, (_, i) => `artist0${10 + i}`), mints: many(10) },
      );
    expect((await ask(10)).body.errors).toBeUndefined();
    const { status, body } = await ask(11);
    expect([status, body.errors]).toMatchObject([400, [{ extensions: { code: "INVALID_MINT" } }]]);
  });
});
