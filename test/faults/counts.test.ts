import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startWorld, type World } from "../world.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld();
});
afterEach(() => world.close());

const count = (method: string) => world.chainCalls().filter((called) => called === method).length;
const times = <T>(number: number, run: (i: number) => T) =>
  Promise.all(Array.from({ length: number }, (_, i) => run(i)));

describe("1,000 concurrent lookups over REST", () => {
  it("of handles that nobody has are at most 14 calls to the network", async () => {
    world.sandbox.social.faults.add({ delayMs: 100 });
    const answers = await times(1_000, (i) => world.lookup(`nobody${i}`));
    expect(answers.every(({ status }) => status === 404)).toBe(true);
    expect(world.sandbox.social.calls.length).toBeLessThanOrEqual(14);
  });

  it("of accounts that are known are at most 34 calls for their balances", async () => {
    const handles = world.sandbox.accounts.filter(({ suspended }) => !suspended).map(({ handle }) => handle);
    for (let i = 0; i < handles.length; i += 100) {
      await world.graphql("query ($handles: [String!]!) { wallets(handles: $handles) { address } }", {
        handles: handles.slice(i, i + 100),
      });
    }
    world.forgetCalls();
    world.sandbox.rpc.faults.add({ delayMs: 100 });
    const answers = await times(1_000, (i) => world.lookup(handles[i % handles.length]!));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(world.sandbox.social.calls).toEqual([]);
    expect(count("getMultipleAccounts")).toBeLessThanOrEqual(34);
  });

  it("of one handle, in whatever case, are one call to the network", async () => {
    const answers = await times(1_000, (i) => world.lookup(i % 2 ? "creator" : "CREATOR"));
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    expect(world.sandbox.social.calls).toHaveLength(1);
  });
});

describe("50 collects at once", () => {
  it("are watched by one poller", async () => {
    const accounts = world.sandbox.accounts
      .filter(({ handle }) => /^artist0[0-5][1-9]$/.test(handle))
      .slice(0, 50);
    const answers = await times(50, (i) => world.collect(accounts[i]!.id));
    expect(answers.map(({ status }) => status)).toEqual(accounts.map(() => 200));
    expect(count("sendTransaction")).toBeGreaterThanOrEqual(50);
    // A poller each would have asked 50 times in the first 400 ms alone.
    expect(count("getSignatureStatuses")).toBeLessThan(25);
  });
});

describe("after a collect", () => {
  it("no lookup reads a state from before it", async () => {
    const { body } = await world.collect(world.account("creator").id);
    const { slot } = world.sandbox.chain.landed(body.txSignature)!;
    world.forgetCalls();
    expect((await world.lookup("creator")).body.balance.pda).toBe("8.3000");
    const [read] = world.sandbox.rpc.calls.filter(({ method }) => method === "getMultipleAccounts");
    expect(read!.params[1]).toMatchObject({ minContextSlot: slot });
  });
});
