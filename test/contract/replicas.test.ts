import { describe, expect } from "vitest";
import { atOnce } from "../support/client.ts";
import { chain, replicas, sandbox, withReplicas } from "../support/fixtures.ts";
import { newMint } from "../support/new-mint.ts";
import { hold, isLook, isMethod } from "../support/sandbox.ts";

const SOL = 1_000_000_000n;

const it = withReplicas();

describe("two replicas", () => {
  it("send one transaction for 20 concurrent collects of one account, and give each its result", async () => {
    const { id, handle } = sandbox.account("creator");
    sandbox.rpc.calls.length = 0;
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const collects = atOnce(20, (i) => replicas.at(i).collect(id));
    await expect.poll(() => sandbox.rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
    await replicas.takeUp();
    release();
    const bodies = (await collects).map(({ body }) => body);
    // A replica that sees the claim only after the landing cannot prove that it landed after its
    // callers' requests: they hear of it as the last collect.
    const signatures = bodies.map((body) => body.txSignature ?? body.lastCollect?.txSignature);
    expect(new Set(signatures)).toEqual(new Set([sandbox.landedCollectsOf(handle)[0]!.signature]));
    const successes = bodies.filter(({ success }) => success);
    expect(successes.length).toBeGreaterThanOrEqual(10);
    for (const body of successes)
      expect(body).toMatchObject({ collected: "3.1000", newBalance: "8.3000" });
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
    const sends = sandbox.rpc.calls.filter(isMethod("sendTransaction"));
    expect(new Set(sends.map(({ params }) => params[0])).size).toBe(1);

    expect((await replicas.at(1).collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });

  it("alternate in collecting fees that arrive after a collect, and report no transaction twice", async () => {
    const { id, handle, creatorVault } = sandbox.account("artist002");
    const before = sandbox.landedCollectsOf(handle).length;
    for (let i = 0; i < 4; i++) {
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 500_000_000n);
      const { body } = await replicas.at(i).collect(id);
      expect(body).toMatchObject({ success: true, collected: "0.5000" });
      expect(sandbox.landedCollectsOf(handle).at(-1)).toMatchObject({
        signature: body.txSignature,
      });
    }
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(before + 4);
  });

  it("collect the coins of a caller who followed the transaction of the other replica", async () => {
    const { id, coins } = sandbox.account("launcher");
    const mints = coins.map(({ mint }) => mint);
    const release = hold(sandbox.rpc, isLook);
    const first = replicas.at(0).collect(id);
    await expect.poll(() => sandbox.landedCollectsOf("launcher").length).toBe(1);
    const second = replicas.at(1).collect(id, {}, mints);
    await replicas.takeUp();
    release();
    expect((await first).body).toMatchObject({ success: true, collected: "1.2500" });
    expect((await second).body).toMatchObject({
      ...{ success: true, collected: "8.5000", remaining: "0.0000" },
    });
    expect(sandbox.landedCollectsOf("launcher")).toHaveLength(2);
  });

  it("show what either learns of a shared coin: that its fees are below the minimum, and that they no longer are", async () => {
    const { account, coins } = sandbox;
    const { id, address, creatorVault } = account("artist001");
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
    chain.setBalance(address, SOL);
    const [mint, stranger] = [newMint(), newMint()];
    // Of 1 SOL the stranger's share is less than an account's rent.
    const shareholders = [
      { address, bps: 9_999 },
      { address: stranger, bps: 1 },
    ];
    coins.launch({ mint, creator: stranger, shareholders, fees: SOL });
    const collectAt = async (i: number) => (await replicas.at(i).collect(id, {}, [mint])).body;
    /** The reason in a lookup, and what its vault counts. */
    const shownAt = async (i: number) => {
      const path = `/wallet/lookup?handle=artist001&mint=${mint}`;
      const { body } = await replicas.at(i).request(path);
      return [body.coins[0].reason, body.balance.vault];
    };
    await collectAt(0);
    for (const i of [0, 1])
      await expect.poll(() => shownAt(i)).toEqual(["BELOW_SHARING_MINIMUM", "0.0000"]);
    // Someone pays the rent of the stranger's address.
    chain.setBalance(stranger, SOL);
    const succeeds = async () => (await collectAt(1)).success;
    await expect.poll(succeeds, { interval: 1_000 }).toBe(true);
    coins.addFees(mint, SOL);
    for (const i of [1, 0]) await expect.poll(() => shownAt(i)).toEqual([null, "0.9999"]);
  });
});
