import { afterEach, beforeEach, expect, it } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startReplicas } from "../support/replicas.ts";

let redis: RedisServer;
let replicas: Awaited<ReturnType<typeof startReplicas>>;
const setUp = async (env: Record<string, string> = {}) => {
  redis = await startRedis();
  replicas = await startReplicas(redis.url, env);
};
const tearDown = async () => {
  await replicas.close();
  await redis.stop();
};
const times = <T>(count: number, run: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, i) => run(i)));
const isMethod = (name: string) => (call: { method: string }) => call.method === name;
const claimKey = async () => (await redis.command("KEYS", "tributary:collect:*"))[0] as string;

describeWithRedis("two replicas", () => {
  beforeEach(() => setUp());
  afterEach(tearDown);

  it("let exactly 20 of 200 requests of one address pass, spread over both, and say what is left", async () => {
    const replies = await times(200, (i) => replicas.lookup(i, "creator", "192.0.2.1"));
    const passed = replies.filter(({ status }) => status === 200);
    const refused = replies.filter(({ status }) => status === 429);
    expect([passed.length, refused.length]).toEqual([20, 180]);
    const left = passed.map(({ headers }) => Number(/;r=(\d+);/.exec(headers.get("ratelimit")!)![1]));
    expect(left.sort((a, b) => b - a)).toEqual(Array.from({ length: 20 }, (_, i) => 19 - i));
    for (const { headers } of refused) {
      expect(headers.get("ratelimit")).toBe(`"address";r=0;t=${headers.get("retry-after")}`);
    }
  });

  it("ask the network once for what either has asked", async () => {
    await replicas.lookup(0, "creator");
    await replicas.lookup(0, "nobody");
    replicas.sandbox.social.calls.length = 0;
    expect((await replicas.lookup(1, "CREATOR")).body.handle).toBe("creator");
    expect((await replicas.lookup(1, "nobody")).status).toBe(404);
    expect(replicas.sandbox.social.calls).toEqual([]);
    await times(20, (i) => replicas.lookup(i, "artist001"));
    expect(replicas.sandbox.social.calls.length).toBeLessThanOrEqual(2);
  });

  it("make one transaction of 20 collects of one account at once, and give each its result", async () => {
    // All have come before the first has signed.
    replicas.sandbox.rpc.faults.add({ when: isMethod("simulateTransaction"), delayMs: 1_000 });
    const replies = await times(20, (i) => replicas.collect(i, "creator"));
    expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
    expect(replies[0]!.body).toMatchObject({ success: true, collected: "3.1000", newBalance: "8.3000" });
    expect(replicas.landedCollects()).toHaveLength(1);
    expect(new Set(replicas.sends().map(({ params }) => params[0])).size).toBe(1);

    expect((await replicas.collect(1, "creator")).body.error).toBe("NOTHING_TO_COLLECT");
    expect(replicas.landedCollects()).toHaveLength(1);
  });

  it("collect again what has come in since, each in its turn", async () => {
    const account = replicas.sandbox.accounts.find(({ handle }) => handle === "creator")!;
    for (let i = 0; i < 4; i++) {
      expect((await replicas.collect(i, "creator")).body).toMatchObject({
        success: true,
        collected: i === 0 ? "3.1000" : "0.5000",
      });
      const held = replicas.sandbox.chain.balance(account.creatorVault);
      replicas.sandbox.chain.setBalance(account.creatorVault, held + 500_000_000n);
    }
    expect(replicas.landedCollects()).toHaveLength(4);
  });
});

describeWithRedis("a replica that is killed", () => {
  beforeEach(() => setUp());
  afterEach(tearDown);
  const kill = () => replicas.programs[0]!.child.kill("SIGKILL");

  it("between send and confirmation is survived: another reports its transaction, and sends none", async () => {
    const lift = replicas.sandbox.rpc.faults.add({ when: isMethod("getSignatureStatuses"), then: "hang" });
    const lost = replicas.collect(0, "creator").catch(() => "lost");
    await expect.poll(replicas.landedCollects, { timeout: 10_000 }).toHaveLength(1);
    kill();
    expect(await lost).toBe("lost");
    lift();

    replicas.sandbox.rpc.calls.length = 0;
    const { status, body } = await replicas.collect(1, "creator");
    const [transaction] = replicas.landedCollects();
    expect([status, body]).toEqual([
      200,
      { success: true, collected: "3.1000", newBalance: "8.3000", txSignature: transaction!.signature },
    ]);
    expect(replicas.sends()).toEqual([]);

    expect((await replicas.collect(1, "creator")).body.error).toBe("NOTHING_TO_COLLECT");
    expect(replicas.landedCollects()).toHaveLength(1);
  });

  it("before its transaction was heard is survived: another sends the same bytes", async () => {
    const lift = replicas.sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: "reset" });
    const lost = replicas.collect(0, "creator").catch(() => "lost");
    await expect.poll(() => replicas.sends().length, { timeout: 10_000 }).toBeGreaterThan(0);
    kill();
    expect(await lost).toBe("lost");
    lift();

    expect((await replicas.collect(1, "creator")).body).toMatchObject({ success: true, collected: "3.1000" });
    expect(new Set(replicas.sends().map(({ params }) => params[0])).size).toBe(1);
    expect(replicas.landedCollects()).toHaveLength(1);
  });

  it("before its transaction could land at all is survived: the next but one signs anew", async () => {
    const lift = replicas.sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: "reset" });
    const lost = replicas.collect(0, "creator").catch(() => "lost");
    await expect.poll(() => replicas.sends().length, { timeout: 10_000 }).toBeGreaterThan(0);
    kill();
    expect(await lost).toBe("lost");
    replicas.sandbox.chain.advanceSlots(300);
    lift();

    const { status, body } = await replicas.collect(1, "creator");
    expect([status, body.error]).toEqual([500, "COLLECT_FAILED"]);
    expect(body.message).toMatch(/^Transaction \w+ did not land and can no longer do so/);
    expect((await replicas.collect(1, "creator")).body).toMatchObject({ success: true, collected: "3.1000" });
    expect(replicas.landedCollects()).toHaveLength(1);
  });

  it("before it signed anything holds others up until its claim expires, and no longer", async () => {
    const lift = replicas.sandbox.rpc.faults.add({ when: isMethod("simulateTransaction"), then: "hang" });
    const lost = replicas.collect(0, "creator").catch(() => "lost");
    await expect
      .poll(() => replicas.sandbox.rpc.calls.some(isMethod("simulateTransaction")), { timeout: 10_000 })
      .toBe(true);
    kill();
    expect(await lost).toBe("lost");
    lift();

    const collect = replicas.collect(1, "creator");
    const expires = await redis.command("PTTL", await claimKey());
    expect(expires).toBeGreaterThan(0);
    expect(expires).toBeLessThanOrEqual(15_000);
    await redis.command("PEXPIRE", await claimKey(), 1);
    expect((await collect).body).toMatchObject({ success: true, collected: "3.1000" });
    expect(replicas.landedCollects()).toHaveLength(1);
  });
});

describeWithRedis("the budget for fees", () => {
  beforeEach(() => setUp({ FEE_BUDGET_LAMPORTS_PER_HOUR: "15000", MAX_PRIORITY_FEE_LAMPORTS: "0" }));
  afterEach(tearDown);

  it("is one for both", async () => {
    const replies = await times(9, (i) => replicas.collect(i, `artist00${i + 1}`));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(replicas.landedCollects()).toHaveLength(3);
  });
});
