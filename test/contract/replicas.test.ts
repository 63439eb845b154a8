import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { atOnce, from, type Answer } from "../support/client.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startReplicas, type Replicas } from "../support/replicas.ts";
import { hold, isMethod, type TestSandbox } from "../support/sandbox.ts";

let redis: RedisServer;
let replicas: Replicas;
let sandbox: TestSandbox;
let accounts = 0;
async function start(options: Parameters<typeof startReplicas>[1] = {}): Promise<void> {
  redis = await startRedis();
  replicas = await startReplicas(redis.url, options);
  sandbox = replicas.sandbox;
  accounts = 0;
}
const stop = async () => {
  await replicas.close();
  await redis.stop();
};

/** An account that no other test uses, with 3.1 SOL to collect and 5.2 SOL at its address. */
function newAccount() {
  const account = sandbox.account(`artist${String(++accounts).padStart(3, "0")}`);
  sandbox.chain.setBalance(account.creatorVault, sandbox.chain.rentExemptMinimum(0) + 3_100_000_000n);
  sandbox.chain.setBalance(account.address, 5_200_000_000n);
  return account;
}
const nextCall = (method: string) =>
  expect.poll(() => sandbox.rpc.calls.filter(isMethod(method)).length).toBeGreaterThan(0);
/** The transactions sent to the chain since its calls were cleared, with repeats. */
const sent = () => sandbox.rpc.calls.filter(isMethod("sendTransaction")).map(({ params }) => params[0]);

describeWithRedis("two replicas", () => {
  beforeAll(() => start());
  afterAll(stop);

  it("let exactly 20 of 200 requests of one address pass, and report the remaining requests", async () => {
    const answers = await atOnce(200, (i) => replicas.at(i).lookup("creator", from("192.0.2.1")));
    const passed = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 429);
    expect([passed.length, refused.length]).toEqual([20, 180]);
    const left = passed.map(({ headers }) => Number(/;r=(\d+);/.exec(headers.get("ratelimit")!)![1]));
    expect(left.sort((a, b) => b - a)).toEqual(Array.from({ length: 20 }, (_, i) => 19 - i));
    for (const { headers } of refused) {
      expect(headers.get("ratelimit")).toBe(`"address";r=0;t=${headers.get("retry-after")}`);
    }
  });

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
    const { id, handle } = newAccount();
    sandbox.rpc.calls.length = 0;
    const release = hold(sandbox.rpc, isMethod("simulateTransaction"));
    const collects = atOnce(20, (i) => replicas.at(i).collect(id));
    await nextCall("simulateTransaction");
    await replicas.takeUp();
    release();
    const answers = await collects;
    expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(answers[0]!.body).toMatchObject({ success: true, collected: "3.1000", newBalance: "8.3000" });
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
    expect(new Set(sent()).size).toBe(1);

    expect((await replicas.at(1).collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });

  it("alternate in collecting fees that arrive after a collect", async () => {
    const { id, handle, creatorVault } = newAccount();
    for (let i = 0; i < 4; i++) {
      expect((await replicas.at(i).collect(id)).body).toMatchObject({
        success: true,
        collected: i === 0 ? "3.1000" : "0.5000",
      });
      sandbox.chain.setBalance(creatorVault, sandbox.chain.balance(creatorVault) + 500_000_000n);
    }
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(4);
  });
});

describeWithRedis("a replica that is killed", () => {
  beforeAll(() => start({ asProcesses: true }));
  afterAll(stop);

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
    const lift = sandbox.rpc.faults.add({ when: isMethod("getSignatureStatuses"), then: "hang" });
    await killAt("getSignatureStatuses", id);
    const [transaction, ...others] = sandbox.landedCollectsOf(handle);
    expect(others).toEqual([]);
    const bytes = sent();
    lift();

    sandbox.rpc.calls.length = 0;
    const { body } = await replicas.at(1).collect(id);
    // It landed before this request.
    expect(body).toMatchObject({
      error: "NOTHING_TO_COLLECT",
      lastCollect: { collected: "3.1000", newBalance: "8.3000", txSignature: transaction!.signature },
    });
    // It may send the same bytes again, but only after checking their status.
    const calls = sandbox.rpc.calls.filter(isMethod("getSignatureStatuses", "sendTransaction"));
    expect(calls[0]!.method).toBe("getSignatureStatuses");
    expect(new Set([...bytes, ...sent()]).size).toBe(1);

    expect((await replicas.at(1).collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });

  it("before its transaction reaches a node loses nothing: another replica sends the same bytes", async () => {
    const { id, handle } = newAccount();
    const lift = sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: "reset" });
    await killAt("sendTransaction", id);
    lift();

    expect((await replicas.at(1).collect(id)).body).toMatchObject({ success: true, collected: "3.1000" });
    expect(new Set(sent()).size).toBe(1);
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });

  it("before signing blocks other collects of the account only until its lock expires", async () => {
    const { id, handle, address } = newAccount();
    const lock = `tributary:v2:collect:{${sandbox.feePayer}:${address}}`;
    const lift = sandbox.rpc.faults.add({ when: isMethod("simulateTransaction"), then: "hang" });
    sandbox.rpc.calls.length = 0;
    const lost = replicas
      .at(0)
      .collect(id)
      .catch(() => "lost");
    await nextCall("simulateTransaction");
    const expires = await redis.command("PTTL", lock);
    expect(expires).toBeGreaterThan(0);
    expect(expires).toBeLessThanOrEqual(15_000);
    replicas.kill(0);
    expect(await lost).toBe("lost");
    // From here on the test decides when the lock expires.
    expect(await redis.command("PERSIST", lock)).toBe(1);
    lift();

    sandbox.rpc.calls.length = 0;
    const collect = replicas.at(1).collect(id);
    await replicas.restart(0);
    expect(sandbox.rpc.calls.filter(isMethod("simulateTransaction"))).toEqual([]);
    await redis.command("PEXPIRE", lock, 1);
    expect((await collect).body).toMatchObject({ success: true, collected: "3.1000" });
    expect(sandbox.landedCollectsOf(handle)).toHaveLength(1);
  });
});

describeWithRedis("the fee budget", () => {
  afterEach(stop);
  /** From another block of addresses for each `i`. */
  const collectFrom = (i: number) => replicas.at(i).collect(newAccount().id, from(`198.18.${i}.1`));
  /** Collects at both replicas at once, each time one account: several would share a transaction and its fee. */
  async function countCollected(count: number, collect: (i: number) => Promise<Answer>): Promise<number> {
    const answers: Answer[] = [];
    for (let i = 0; i < count; i += 2) answers.push(...(await atOnce(2, (replica) => collect(i + replica))));
    return answers.filter(({ status }) => status === 200).length;
  }

  it("and each caller's share are shared by both replicas exactly", async () => {
    await start({ env: { FEE_BUDGET_LAMPORTS_PER_HOUR: "80000", MAX_PRIORITY_FEE_LAMPORTS: "0" } });
    const ofOne = (i: number) => replicas.at(i).collect(newAccount().id, from(`192.0.2.${i}`));
    expect(await countCollected(10, ofOne)).toBe(2);
    expect(await countCollected(24, collectFrom)).toBe(14);
    expect(sandbox.landedCollects()).toHaveLength(16);
  });

  it("is a quarter for each replica while Redis is down, and they say so", async () => {
    const env = { FEE_BUDGET_LAMPORTS_PER_HOUR: "160000", MAX_PRIORITY_FEE_LAMPORTS: "0" };
    // Long enough for a busy machine, and short enough to notice that Redis is gone.
    await start({ env, redisAnswerTimeoutMs: 2_000 });
    await redis.stop();
    await replicas.redisIsAway();
    expect(await countCollected(24, collectFrom)).toBe(16);
    for (const i of [0, 1]) {
      expect(replicas.output(i)).toMatch(/"budget":"fees:\w+","limit":40000,"callerLimit":5000,/);
    }
  });
});
