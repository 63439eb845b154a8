import { describe, expect } from "vitest";
import { replicas, sandbox, withReplicas } from "../support/fixtures.ts";
import { hold, isMethod } from "../support/sandbox.ts";

const it = withReplicas();

describe("when Redis is emptied while two replicas collect", () => {
  const isSimulation = isMethod("simulateTransaction");
  const simulations = () => sandbox.rpc.calls.filter(isSimulation).length;

  it("the one that signs tells its callers what it moved, also if the other has the claim since", async () => {
    const one = sandbox.account("artist001");
    const other = sandbox.account("artist002");
    sandbox.rpc.calls.length = 0;
    const holdNextSimulation = () => {
      let isHeld = false;
      return hold(sandbox.rpc, (call) => isSimulation(call) && !isHeld && (isHeld = true));
    };
    // While another collect runs, accounts share a transaction.
    const releaseFirst = holdNextSimulation();
    const collectFirst = replicas.at(0).collect(sandbox.account("artist003").id);
    await expect.poll(simulations).toBe(1);
    const sign = holdNextSimulation();
    const collectOne = replicas.at(0).collect(one.id);
    const collectOther = replicas.at(0).collect(other.id);
    await expect.poll(simulations).toBe(2);

    await replicas.redis.command("FLUSHALL");
    const releaseSecond = hold(sandbox.rpc, isSimulation);
    const collectAgain = replicas.at(1).collect(one.id);
    await expect.poll(simulations).toBe(3);
    sign();
    const [{ body }, { body: otherBody }] = await Promise.all([collectOne, collectOther]);
    const { signature } = sandbox.landedCollectsOf(one.handle)[0]!;
    expect([body.success, body.txSignature]).toEqual([true, signature]);
    expect([otherBody.success, otherBody.txSignature]).toEqual([true, signature]);

    releaseFirst();
    releaseSecond();
    expect((await collectFirst).body.success).toBe(true);
    expect((await collectAgain).body).toMatchObject({
      error: "NOTHING_TO_COLLECT",
      lastCollect: { txSignature: signature },
    });
    expect(sandbox.landedCollectsOf(one.handle)).toHaveLength(1);
  });
});
