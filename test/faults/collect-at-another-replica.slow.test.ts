import { expect, it } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { withReplicas, type Replicas } from "../support/replicas.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { isMethod, type TestSandbox } from "../support/sandbox.ts";

type Call = TestSandbox["rpc"]["calls"][number] & { readonly params: readonly any[] };

describeWithRedis("after a collect at one replica, the other", () => {
  let redis: RedisServer;
  let replicas: Replicas;
  let sandbox: TestSandbox;
  withReplicas(
    (started, server) => {
      replicas = started;
      sandbox = started.sandbox;
      redis = server;
    },
    { asProcesses: true },
  );

  const landedSlot = (handle: string) => sandbox.landedCollectsOf(handle)[0]!.slot;
  const slotRequiredBy = ({ params }: Call): number => params[1].minContextSlot ?? 0;
  /** The second replica's read of the account's balance. */
  async function readBalance({ handle, address }: SandboxAccount): Promise<Call> {
    sandbox.rpc.calls.length = 0;
    await replicas.at(1).lookup(handle);
    return sandbox.rpc.calls.find(readsBalanceOf(address))!;
  }
  const readsBalanceOf = (address: string) => (call: Call) =>
    isMethod("getMultipleAccounts")(call) && call.params[0].includes(address);

  /**
   * From now on the node answers reads of the balance that require no slot with the balance of now.
   */
  async function freezeBalance(account: SandboxAccount): Promise<() => void> {
    const { method, params } = await readBalance(account);
    const response = await fetch(sandbox.rpc.url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const { result } = (await response.json()) as { result: unknown };
    return sandbox.rpc.faults.add({
      when: (call) => readsBalanceOf(account.address)(call) && slotRequiredBy(call) === 0,
      then: rpcResult(result),
    });
  }

  it("shows no older state, even before the collect is answered", async () => {
    const account = sandbox.account("creator");
    const { handle, id } = account;
    const lift = await freezeBalance(account);
    expect((await replicas.at(1).lookup(handle)).body.balance.vault).toBe("3.1000");
    const release = sandbox.rpc.faults.add({
      when: isMethod("getTransaction"),
      then: rpcResult(null),
    });
    let isAnswered = false;
    const collect = replicas.at(0).collect(id);
    void collect.then(() => (isAnswered = true));
    await expect
      .poll(async () => (await replicas.at(1).lookup(handle)).body.balance)
      .toMatchObject({ vault: "0.0000", pda: "8.3000", total: "8.3000" });
    expect(isAnswered).toBe(false);
    expect(slotRequiredBy(await readBalance(account))).toBeGreaterThanOrEqual(landedSlot(handle));
    release();
    expect((await collect).body).toMatchObject({ collected: "3.1000" });
    lift();
  });

  it("shows no older state after its own restart", async () => {
    const account = sandbox.account("artist001");
    expect((await replicas.at(0).collect(account.id)).status).toBe(200);
    const [key] = await redis.command("KEYS", "tributary:v2:landed-slot:*");
    // On a slow machine a restart takes longer than the key lives.
    await redis.command("PERSIST", key);
    replicas.kill(1);
    await replicas.restart(1);
    await expect
      .poll(async () => slotRequiredBy(await readBalance(account)))
      .toBeGreaterThanOrEqual(landedSlot(account.handle));
  });
});
