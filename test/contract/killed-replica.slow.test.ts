import { describe, expect } from "vitest";
import { messageOf } from "../../src/chain/units/message.ts";
import { replicas, sandbox, withReplicas } from "../support/fixtures.ts";
import { isMethod, isLook } from "../support/sandbox.ts";

let accounts = 0;

/** An account that no other test uses, with 3.1 SOL to collect and 5.2 SOL at its address. */
function newAccount() {
  const account = sandbox.account(`artist${String(++accounts).padStart(3, "0")}`);
  sandbox.chain.setBalance(
    account.creatorVault,
    sandbox.chain.rentExemptMinimum(0) + 3_100_000_000n,
  );
  sandbox.chain.setBalance(account.address, 5_200_000_000n);
  return account;
}
const nextCall = (method: string) =>
  expect.poll(() => sandbox.rpc.calls.filter(isMethod(method)).length).toBeGreaterThan(0);
/** The transactions sent to the chain since its calls were cleared, with repeats. */
const sent = () =>
  sandbox.rpc.calls.filter(isMethod("sendTransaction")).map(({ params }) => params[0]);

const it = withReplicas({ asProcesses: true });

describe("a replica that is killed", () => {
  /** Starts a collect, kills its replica after this RPC call, and restarts the replica. */
  async function killAt(method: string, id: string): Promise<void> {
    sandbox.rpc.calls.length = 0;
    const lost = replicas
      .at(0)
      .collect(id)
      .catch(() => "lost");
    await nextCall(method);
    replicas.kill(0);
    expect(await lost).toBe("lost");
    await replicas.restart(0);
  }

  it("between send and confirmation loses nothing: another replica reports its transaction, and signs none", async () => {
    const { id, handle } = newAccount();
    const lift = sandbox.rpc.faults.add({ when: isLook, then: "hang" });
    await killAt("getTransaction", id);
    const [transaction, ...others] = sandbox.landedCollectsOf(handle);
    expect(others).toEqual([]);
    const bytes = sent();
    lift();

    sandbox.rpc.calls.length = 0;
    const { body } = await replicas.at(1).collect(id);
    // It landed before this request.
    expect(body).toMatchObject({
      error: "NOTHING_TO_COLLECT",
      lastCollect: {
        collected: "3.1000",
        newBalance: "8.3000",
        txSignature: transaction!.signature,
      },
    });
    // It may send the same bytes again, but only after looking for them.
    const calls = sandbox.rpc.calls.filter(isMethod("getTransaction", "sendTransaction"));
    expect(calls[0]!.method).toBe("getTransaction");
    expect(new Set([...bytes, ...sent()]).size).toBe(1);

    expect((await replicas.at(1).collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });

  it("before its transaction reaches a node loses nothing: another replica sends the same bytes", async () => {
    const { id, handle } = newAccount();
    const lift = sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: "reset" });
    await killAt("sendTransaction", id);
    lift();

    expect((await replicas.at(1).collect(id)).body).toMatchObject({
      success: true,
      collected: "3.1000",
    });
    expect(new Set(sent()).size).toBe(1);
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });

  it("before signing blocks other collects of the account only until its lock expires", async () => {
    const { id, handle, address } = newAccount();
    const lock = `tributary:v3:claim:{${sandbox.feePayer}:${address}}`;
    const lift = sandbox.rpc.faults.add({ when: isMethod("simulateTransaction"), then: "hang" });
    sandbox.rpc.calls.length = 0;
    const lost = replicas
      .at(0)
      .collect(id)
      .catch(() => "lost");
    await nextCall("simulateTransaction");
    const expires = await replicas.redis.command("PTTL", lock);
    expect(expires).toBeGreaterThan(0);
    expect(expires).toBeLessThanOrEqual(15_000);
    replicas.kill(0);
    expect(await lost).toBe("lost");
    // From here on the test decides when the lock expires.
    expect(await replicas.redis.command("PERSIST", lock)).toBe(1);
    lift();

    sandbox.rpc.calls.length = 0;
    const collect = replicas.at(1).collect(id);
    await replicas.restart(0);
    const ofAccount = ({ params }: { params: readonly unknown[] }) =>
      messageOf(String(params[0]))!.staticAccountKeys.some((key) => key.toBase58() === address);
    // A replica simulates a transfer when it starts.
    const simulations = sandbox.rpc.calls.filter(isMethod("simulateTransaction"));
    expect(simulations.filter(ofAccount)).toEqual([]);
    await replicas.redis.command("PEXPIRE", lock, 1);
    expect((await collect).body).toMatchObject({ success: true, collected: "3.1000" });
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });
});
