import { describe, expect } from "vitest";
import { atOnce } from "../support/client.ts";
import { replicas, sandbox, withReplicas } from "../support/fixtures.ts";
import { hold, isMethod } from "../support/sandbox.ts";

const nextCall = (method: string) =>
  expect.poll(() => sandbox.rpc.calls.filter(isMethod(method)).length).toBeGreaterThan(0);
/** The transactions sent to the chain since its calls were cleared, with repeats. */
const sent = () =>
  sandbox.rpc.calls.filter(isMethod("sendTransaction")).map(({ params }) => params[0]);

const it = withReplicas();

describe("two replicas", () => {
  it("share looked-up accounts, so that each is requested once", async () => {
    await replicas.at(0).lookup("creator");
    await replicas.at(0).lookup("nobody");
    sandbox.social.calls.length = 0;
    expect((await replicas.at(1).lookup("CREATOR")).body.handle).toBe("creator");
    expect((await replicas.at(1).lookup("nobody")).status).toBe(404);
    expect(sandbox.social.calls).toEqual([]);
    await atOnce(20, (i) => replicas.at(i).lookup("artist200"));
    expect(sandbox.social.calls.length).toBeLessThanOrEqual(2);
  });

  it("send one transaction for 20 concurrent collects of one account, and give each its result", async () => {
    const { id, handle } = sandbox.account("creator");
    sandbox.rpc.calls.length = 0;
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const collects = atOnce(20, (i) => replicas.at(i).collect(id));
    await nextCall("simulateTransaction");
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
    expect(new Set(sent()).size).toBe(1);

    expect((await replicas.at(1).collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });

  it("alternate in collecting fees that arrive after a collect, and report no transaction twice", async () => {
    const { id, handle, creatorVault } = sandbox.account("artist002");
    const { chain } = sandbox;
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
});
