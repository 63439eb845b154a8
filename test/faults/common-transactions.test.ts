import { beforeEach, describe, expect } from "vitest";
import { decodeTransaction } from "../../src/sandbox/chain/wire-transaction.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { isMethod } from "../support/sandbox.ts";
import { withNewWorld, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;
/** How far a block's height advances each time a dropped transaction is sent again. */
const SLOTS_PER_SEND = 10;
const COLLECT_MANY = `mutation ($collects: [CollectInput!]!) {
  collectMany(collects: $collects) { success collected txSignature error }
}`;

const it = withNewWorld({ RATE_LIMIT_MAX: "1000" }, { waits: { resendMs: 20 } });
let chain: World["sandbox"]["chain"];
beforeEach(() => {
  ({ chain } = world.sandbox);
});

type Call = World["sandbox"]["rpc"]["calls"][number];

/** Accounts with a SOL each to collect. */
function fill(count: number): SandboxAccount[] {
  return Array.from({ length: count }, (_, i) => {
    const account = world.account(`artist${String(i + 1).padStart(3, "0")}`);
    chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0) + SOL);
    chain.setBalance(account.address, SOL);
    return account;
  });
}
/** The addresses in a transaction in base64. */
const addressesIn = (base64: unknown) =>
  decodeTransaction(Buffer.from(String(base64), "base64")).message.staticAccounts;
const names = ({ params }: Call, { creatorVault }: Pick<SandboxAccount, "creatorVault">) =>
  addressesIn(params[0]).some((address) => address === creatorVault);
async function collectMany(accounts: readonly SandboxAccount[]): Promise<any[]> {
  const collects = accounts.map(({ id }) => ({ socialId: id }));
  return (await world.graphql(COLLECT_MANY, { collects })).body.data.collectMany;
}
/** How many accounts each sent transaction of an account has, in the order of the first send. */
function sizesOf(account: SandboxAccount, all: readonly SandboxAccount[]): number[] {
  const sent = world.sandbox.rpc.calls.filter(isMethod("sendTransaction"));
  return [...new Set(sent.filter((call) => names(call, account)).map(({ params }) => params[0]))]
    .map(addressesIn)
    .map((keys) => all.filter(({ creatorVault }) => keys.includes(creatorVault as never)).length);
}
const collected = { success: true, collected: "1.0000", error: null };

describe("a common transaction that expires, because one of its vaults is congested,", () => {
  /** No transaction with this account's vault lands, and each expires. */
  function congest(account: SandboxAccount): void {
    world.sandbox.rpc.faults.add({
      when: (call) => {
        if (!isMethod("sendTransaction")(call) || !names(call, account)) return false;
        chain.advanceSlots(SLOTS_PER_SEND);
        return true;
      },
      then: rpcResult("dropped"),
    });
  }

  it("has moved nothing, and the next one has all again, and lands once for each", async () => {
    const accounts = fill(12);
    congest(accounts[4]!);
    expect(await collectMany(accounts)).toEqual(Array(12).fill(null));
    world.sandbox.rpc.faults.clear();
    expect(await collectMany(accounts)).toMatchObject(Array(12).fill(collected));
    expect(sizesOf(accounts[4]!, accounts)).toEqual([12, 12]);
    for (const { handle } of accounts)
      expect(world.sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });
});
