import { describe, expect } from "vitest";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import { createClient, from } from "../support/client.ts";
import { coinFees } from "../support/coin-balances.ts";
import { sharingConfigOf } from "../support/launchpad-instructions.ts";
import { runProduction } from "../support/production.ts";
import { it, world } from "../support/fixtures.ts";

const JSON_TYPE = { "content-type": "application/json" };

const send = (body: string, headers: Record<string, string> = JSON_TYPE) =>
  world.request("/sandbox/fees", { method: "POST", headers, body });
const trade = (handle: string, source: string) =>
  send(JSON.stringify({ socialId: world.account(handle).id, source }));

const part = (lamports: bigint, bps: bigint) => (lamports * bps) / 10_000n;

/** What waits for an account and what has arrived at its address, in lamports, and its coins. */
async function walletOf(handle: string, mints: string[] = []) {
  const { body } = await world.graphql(
    `query ($handle: String!, $mints: [String!]!) {
      wallet(handle: $handle) {
        balance(mints: $mints) { vaultLamports pdaLamports }
        coins(mints: $mints) { mint stage amount collectable }
      }
    }`,
    { handle, mints },
  );
  const { balance, coins } = body.data.wallet;
  return { waiting: BigInt(balance.vaultLamports), arrived: BigInt(balance.pdaLamports), coins };
}

describe("POST /sandbox/fees", () => {
  it.each(["newcomer", "artist001", "graduate", "launcher"])(
    "earns %s fees in the vault, on a curve and in a pool, which one collect moves",
    async (handle) => {
      const before = await walletOf(handle);
      const answers = [];
      for (const source of ["VAULT", "CURVE", "POOL"]) answers.push(await trade(handle, source));
      for (const { status, body } of answers) {
        expect([status, body]).toEqual([200, { lamports: expect.any(String), mint: body.mint }]);
        expect(Number(body.lamports)).toBeGreaterThanOrEqual(100_000_000);
        expect(Number(body.lamports)).toBeLessThanOrEqual(500_000_000);
      }
      const [inVault, onCurve, inPool] = answers.map(({ body }) => body);
      expect(inVault.mint).toBeNull();
      const mints = [onCurve.mint, inPool.mint];
      const earned = BigInt(inVault.lamports) + BigInt(onCurve.lamports) + BigInt(inPool.lamports);
      const traded = await walletOf(handle, mints);
      expect(traded.waiting).toBe(before.waiting + earned);
      expect(traded.coins).toMatchObject([
        { mint: onCurve.mint, stage: "CURVE", amount: onCurve.lamports, collectable: true },
        { mint: inPool.mint, stage: "POOL", amount: inPool.lamports, collectable: true },
      ]);

      expect((await world.collect(world.account(handle).id, {}, mints)).body.success).toBe(true);
      const collected = await walletOf(handle, mints);
      expect(collected).toMatchObject({ waiting: 0n, arrived: before.arrived + traded.waiting });
    },
  );

  it("adds later fees to the same coin of the account and stage, and never to another account's", async () => {
    const handles = ["artist002", "artist003"];
    const mints = new Set<string>();
    for (const handle of handles) {
      for (const source of ["CURVE", "POOL"]) {
        const [first, second] = [await trade(handle, source), await trade(handle, source)];
        expect(second.body.mint).toBe(first.body.mint);
        mints.add(first.body.mint);
        const { coins } = await walletOf(handle, [first.body.mint]);
        const amount = String(BigInt(first.body.lamports) + BigInt(second.body.lamports));
        expect(coins).toMatchObject([{ stage: source, amount }]);
      }
    }
    expect(mints.size).toBe(4);
  });

  it("earns fees on a coin that the account shares with a stranger, or on the coin that `band` shares", async () => {
    const { chain, coins } = world.sandbox;
    for (const [handle, bps] of [
      ["band", 5_000n],
      ["graduate", 6_000n],
      ["newcomer", 6_000n],
    ] as const) {
      const account = world.account(handle);
      const [first, second] = [await trade(handle, "SHARED"), await trade(handle, "SHARED")];
      expect([first.status, second.body.mint]).toEqual([200, first.body.mint]);
      const { mint } = first.body;
      expect(mint === world.account("band").coins[0]!.mint).toBe(handle === "band");
      expect(coins.creatorOf(mint)).toBe(sharingConfigOf(mint));
      const seeded = handle === "band" ? 1_200_000_000n : 0n;
      const earned = BigInt(first.body.lamports) + BigInt(second.body.lamports);
      const waiting = seeded + earned;
      expect(coinFees(chain, mint)).toEqual({ curve: waiting, pool: 0n });

      // The first collect moves the vault.
      await world.collect(account.id);
      const before = { own: chain.balance(account.address), stranger: chain.balance(STRANGER) };
      expect((await world.collect(account.id, {}, [mint])).body.success).toBe(true);
      expect(chain.balance(STRANGER) - before.stranger).toBe(
        part(waiting, handle === "band" ? 2_000n : 4_000n),
      );
      expect(chain.balance(account.address) - before.own).toBeGreaterThanOrEqual(
        part(waiting, bps),
      );
    }
  });

  it("earns the lamports that the caller names", async () => {
    const { id } = world.account("artist004");
    const { chain } = world.sandbox;
    const { creatorVault } = world.account("artist004");
    let balance = chain.balance(creatorVault);
    for (const lamports of [1, "250000000", 100_000_000_000]) {
      const { status, body } = await send(
        JSON.stringify({ socialId: id, source: "VAULT", lamports }),
      );
      expect([status, body]).toEqual([200, { lamports: String(lamports), mint: null }]);
      expect(chain.balance(creatorVault)).toBe((balance += BigInt(lamports)));
    }
    for (const lamports of [0, -1, 0.5, 100_000_000_001, "1e9", "", "0x10", true, null, [1]]) {
      const { status, body } = await send(
        JSON.stringify({ socialId: id, source: "VAULT", lamports }),
      );
      expect([lamports, status, body]).toEqual([
        lamports,
        400,
        {
          error: "BAD_REQUEST",
          message: expect.stringContaining("whole number from 1 to 100000000000"),
        },
      ]);
    }
    expect(chain.balance(creatorVault)).toBe(balance);
  });

  it("refuses an id that none of the sandbox's accounts has, so that callers add no accounts to the chain", async () => {
    for (const [socialId, message] of [
      ["7", 'The sandbox has no account with the id "7".'],
      ["x", expect.stringContaining('Received "x"')],
      [1523400000000000123, expect.stringContaining("Received a number")],
      [undefined, expect.stringContaining("`socialId` is missing")],
    ]) {
      const { status, body } = await send(JSON.stringify({ socialId, source: "CURVE" }));
      expect([status, body]).toEqual([400, { error: "INVALID_SOCIAL_ID", message }]);
    }
  });

  it("refuses bodies that are not JSON with a source", async () => {
    const good = { socialId: world.account("creator").id, source: "VAULT" };
    const before = await walletOf("creator");
    for (const [body, headers] of [
      ["", JSON_TYPE],
      ["{", JSON_TYPE],
      ["null", JSON_TYPE],
      ["[]", JSON_TYPE],
      [JSON.stringify({ ...good, source: "vault" }), JSON_TYPE],
      [JSON.stringify({ ...good, source: "toString" }), JSON_TYPE],
      [JSON.stringify({ socialId: good.socialId }), JSON_TYPE],
      [JSON.stringify({ ...good, padding: "x".repeat(1024) }), JSON_TYPE],
    ] as const) {
      const answer = await send(body, headers);
      expect([answer.status, answer.body]).toEqual([
        400,
        { error: "BAD_REQUEST", message: expect.stringContaining("VAULT, CURVE, POOL, SHARED") },
      ]);
    }
    expect(await walletOf("creator")).toEqual(before);
  });

  it("counts against the caller's rate limit", async () => {
    const caller = { ...JSON_TYPE, ...from("192.0.2.7") };
    const { headers } = await send("", caller);
    expect(headers.get("ratelimit")).toContain("r=19;");
  });
});

it("a service in production has no /sandbox/fees, even on a sandbox's chain", async () => {
  const { client } = await runProduction(world.sandbox);
  for (const method of ["POST", "GET", "OPTIONS"]) {
    const answer = await client.request("/sandbox/fees", { method });
    const unknown = await createClient(client.url).request("/nothing/here", { method });
    expect([answer.status, answer.body]).toEqual([404, unknown.body]);
  }
});
