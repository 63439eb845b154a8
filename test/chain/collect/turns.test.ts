import { describe, expect, it } from "vitest";
import { createAddresses } from "../../../src/chain/launchpad/account-addresses.ts";
import { nextTurn, type Waiter } from "../../../src/chain/collect/turns.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import {
  coinAddressesOf,
  type CoinAddresses,
} from "../../../src/chain/launchpad/coin-addresses.ts";
import { newMint } from "../../support/new-mint.ts";

const account = createAddresses({
  escrowProgramId: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  escrowSeed: "social",
})("1");
const coin = coinAddressesOf(newMint());

/** A request of a block that waits for its account's own unit, with these coins. */
const wait = (block: string, named: readonly CoinAddresses[] = []): Waiter =>
  ({
    request: { account, coins: named, caller: { addressBlock: block, visitorBlock: block } },
    unit: {
      ...{ kind: "own", key: account.address, account, gain: toLamports(1) },
      sweeps: named.map((coin) => ({ coin, stage: "CURVE", amount: toLamports(1) })),
    },
  }) as unknown as Waiter;
const turnOf = (waiters: readonly Waiter[], counts: Record<string, number> = {}) => {
  const turn = nextTurn(waiters, new Map(Object.entries(counts)));
  return (turn?.members ?? []).map((member) => waiters.indexOf(member));
};

describe("the next turn", () => {
  it("is nobody's if nobody waits", () => {
    expect(turnOf([])).toEqual([]);
  });

  it("is that of all requests without coins, whoever else waits", () => {
    expect(turnOf([wait("a", [coin]), wait("a"), wait("b")])).toEqual([1, 2]);
  });

  it("is that of the request that waits longest, alone", () => {
    expect(turnOf([wait("a", [coin]), wait("b", [coin]), wait("a", [coin])])).toEqual([0]);
  });

  it("is that of the block with the fewest turns", () => {
    expect(turnOf([wait("a", [coin]), wait("b", [coin])], { a: 1 })).toEqual([1]);
  });

  it("is that of the /32 of IPv6 with the fewest turns, whatever its blocks had", () => {
    const waiters = [wait("2001:db8:1::/48", [coin]), wait("2001:db9:1::/48", [coin])];
    const counts = { "2001:db8::/32": 2, "2001:db9::/32": 1, "2001:db9:1::/48": 1 };
    expect(turnOf(waiters, counts)).toEqual([1]);
  });

  it("counts against the block that names coins, and against its /32", () => {
    const counts = new Map<string, number>();
    nextTurn([wait("2001:db8:1::/48", [coin])], counts);
    nextTurn([wait("a")], counts);
    expect(Object.fromEntries(counts)).toEqual({ "2001:db8::/32": 1, "2001:db8:1::/48": 1 });
  });

  it("of a shared coin is led by the largest share", () => {
    const waiters = [1, 3, 2].map((gain) => {
      const waiter = wait("a");
      return { ...waiter, unit: { ...waiter.unit, gain: toLamports(gain) } };
    });
    expect(nextTurn(waiters, new Map())?.leader).toBe(waiters[1]);
  });
});
