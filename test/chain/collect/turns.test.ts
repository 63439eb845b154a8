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
const coins = Array.from({ length: 25 }, () => coinAddressesOf(newMint()));
const [first, second] = coins as [CoinAddresses, CoinAddresses];

/** A request of a block that waits for its account's own unit, with these coins. */
const wait = (block: string, named: readonly CoinAddresses[] = []): Waiter =>
  ({
    request: { account, coins: named, caller: { addressBlock: block, visitorBlock: block } },
    unit: {
      ...{ kind: "own", key: account.address, account },
      sweeps: named.map((coin) => ({ coin, stage: "CURVE", amount: toLamports(1) })),
    },
  }) as unknown as Waiter;
const turnOf = (waiters: readonly Waiter[], counts: Record<string, number> = {}) => {
  const turn = nextTurn(waiters, new Map(Object.entries(counts)), false);
  return [...(turn?.members ?? [])].map((member) => waiters.indexOf(member as Waiter));
};

describe("the next turn", () => {
  it("is nobody's if nobody waits", () => {
    expect(turnOf([])).toEqual([]);
  });

  it("is that of all requests without coins, whoever else waits", () => {
    expect(turnOf([wait("a", [first]), wait("a"), wait("b")])).toEqual([1, 2]);
  });

  it("is that of a block's requests, the block's that waits longest", () => {
    expect(turnOf([wait("a", [first]), wait("b", [first]), wait("a", [second])])).toEqual([0, 2]);
  });

  it("is that of the block with the fewest turns", () => {
    expect(turnOf([wait("a", [first]), wait("b", [first])], { a: 1 })).toEqual([1]);
  });

  it("is that of the /32 of IPv6 with the fewest turns, whatever its blocks had", () => {
    const waiters = [wait("2001:db8:1::/48", [first]), wait("2001:db9:1::/48", [first])];
    const counts = { "2001:db8::/32": 2, "2001:db9::/32": 1, "2001:db9:1::/48": 1 };
    expect(turnOf(waiters, counts)).toEqual([1]);
  });

  it("has at most 19 coins: a request with others waits", () => {
    const waiters = [
      wait("a", coins.slice(0, 10)),
      wait("a", coins.slice(10, 20)),
      wait("a", coins.slice(5, 15)),
    ];
    expect(turnOf(waiters)).toEqual([0, 2]);
  });
});
