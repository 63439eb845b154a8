import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import type { RedisServer } from "../../support/redis-server.ts";
import { startWorld, type World } from "../../support/world.ts";
import type { Redis } from "../../../src/upstream/redis.ts";
import {
  createSandboxCollector,
  type ChainRpc,
  type SandboxCollector,
} from "../../support/collector-on-sandbox.ts";
import { isMethod, startTestSandbox, type TestSandbox } from "../../support/sandbox.ts";

const sendsTo = (rpc: ChainRpc) => rpc.calls.filter(isMethod("sendTransaction"));
const answer = (result: unknown) => ({
  status: 200,
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, result }),
});
/** An endpoint that is behind is asked again and again: a fault with this holds a call up until it is lifted. */
const BEHIND = {
  status: 200,
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32005, message: "Node is behind" } }),
};
const UNKNOWN_SIGNATURE = answer({ context: { slot: 1 }, value: [null] });
const ALL_FEES = { kind: "collected", collected: 3_100_000_000n, newBalance: 8_300_000_000n };

let sandbox: TestSandbox;
let chain: TestSandbox["chain"];
let rpc: ChainRpc;
let collector: SandboxCollector;
beforeEach(async () => {
  sandbox = await startTestSandbox();
  ({ chain, rpc } = sandbox);
  collector = createSandboxCollector(sandbox);
});
afterEach(async () => {
  rpc.faults.clear();
  sandbox.secondRpc.faults.clear();
  // Ends what still waits for the chain.
  await sandbox.close();
});

const sends = () => sendsTo(rpc);
const wasCalled = (method: string) =>
  expect.poll(() => rpc.calls.filter(isMethod(method)).length).toBeGreaterThan(0);
const wasSent = () => wasCalled("sendTransaction");
/** Runs once, at the moment of the first call of a method. */
function atFirst(method: string, run: () => void): void {
  rpc.faults.add({
    times: 1,
    when(call) {
      if (call.method !== method) return false;
      run();
      return true;
    },
  });
}

describe("a transaction in flight", () => {
  it("is sent again, the same bytes, until it lands", async () => {
    rpc.faults.add({ when: isMethod("sendTransaction"), times: 2, then: BEHIND });
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
    expect(sends().length).toBeGreaterThanOrEqual(3);
    expect(new Set(sends().map(({ params }) => params[0])).size).toBe(1);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("counts as sent when the answer to its sending is lost", async () => {
    rpc.faults.add({ when: isMethod("sendTransaction"), times: 1, then: "reset", after: true });
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("is followed through reads that fail and a node that does not know it for a while", async () => {
    rpc.faults.add({ when: isMethod("getSignatureStatuses"), times: 2, then: "reset" });
    rpc.faults.add({ when: isMethod("getTransaction"), times: 2, then: answer(null) });
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("is reported expired only when it can no longer land, and the next collect signs anew", async () => {
    const lift = rpc.faults.add({ when: isMethod("sendTransaction"), then: BEHIND });
    const first = collector.collect("creator");
    await wasSent();
    const [signature] = collector.openSignatures();
    chain.advanceSlots(200);
    expect(await first).toEqual({ kind: "expired", signature });
    lift();

    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
    expect(new Set(sends().map(({ params }) => params[0])).size).toBe(2);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("is not reported expired by a node that has not seen its blockhash expire", async () => {
    const { secondRpc } = sandbox;
    collector = createSandboxCollector(sandbox, { rpcs: [rpc, secondRpc] });
    const isStatus = isMethod("getSignatureStatuses");
    rpc.faults.add({ when: isStatus, then: { status: 429, body: "" } });
    secondRpc.faults.add({ when: isStatus, then: UNKNOWN_SIGNATURE });
    const collect = collector.collect("creator");
    await expect.poll(sandbox.landedCollects).toHaveLength(1);
    chain.advanceSlots(250);
    const searches = () =>
      secondRpc.calls.filter(
        (call) => isStatus(call) && (call.params[1] as any).searchTransactionHistory === true,
      );
    await expect.poll(searches).not.toEqual([]);
    rpc.faults.clear();
    secondRpc.faults.clear();
    expect(await collect).toMatchObject(ALL_FEES);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("that fails on the chain makes its account back off while others are collected", async () => {
    // Between simulation and landing the address and its vault become too poor for the address to exist.
    const { address, creatorVault } = sandbox.account("creator");
    const [before, waiting] = [chain.balance(address), chain.balance(creatorVault)];
    atFirst("getLatestBlockhash", () => {
      chain.setBalance(address, 0n);
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 100_000n);
    });
    const failure = await collector.collect("creator");
    chain.setBalance(address, before);
    chain.setBalance(creatorVault, waiting);
    const [failed] = sandbox.landedCollects();
    expect(failed!.err).not.toBeNull();
    expect(failure).toEqual({ kind: "failed-on-chain", signature: failed!.signature, err: failed!.err });

    expect(await collector.collect("creator")).toEqual({ kind: "backing-off", leftMs: expect.any(Number) });
    expect(await collector.collect("artist001")).toMatchObject({ kind: "collected" });
    chain.setBalance(creatorVault, 0n);
    expect(await collector.collect("creator")).toEqual({ kind: "nothing" });
    expect(sandbox.landedCollects()).toHaveLength(2);
  });

  it("is known to have landed although another call about it hangs", async () => {
    rpc.faults.add({ when: isMethod("getSignatureStatuses"), times: 6, then: UNKNOWN_SIGNATURE });
    rpc.faults.add({ when: isMethod("getEpochInfo"), then: "hang" });
    expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
  });

  it("has collected nothing when someone on the chain was faster", async () => {
    const { creatorVault } = sandbox.account("creator");
    atFirst("getLatestBlockhash", () => {
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
    });
    expect(await collector.collect("creator")).toEqual({ kind: "nothing" });
    expect(sandbox.landedCollects()).toHaveLength(1);
  });
});

describe("a collect", () => {
  it("is not stopped by a withdrawal from the address at the same moment", async () => {
    atFirst("simulateTransaction", () => {
      chain.setBalance(sandbox.account("creator").address, 1_000_000_000n);
    });
    expect(await collector.collect("creator")).toMatchObject({
      kind: "collected",
      collected: 3_100_000_000n,
      newBalance: 4_100_000_000n,
    });
  });

  it("is refused at once when too many others are in flight", async () => {
    rpc.faults.add({ when: isMethod("getMultipleAccounts"), then: "hang" });
    const refused: unknown[] = [];
    for (let i = 0; i < 205; i++) {
      const account = { ...sandbox.account("creator"), address: `address ${i}` };
      collector.collector.collect(account, performance.now()).catch((error: unknown) => refused.push(error));
    }
    await new Promise(setImmediate);
    expect(refused).toEqual(
      Array(5).fill(expect.objectContaining({ failure: { kind: "too-many-in-flight" } })),
    );
  });

  it("is not started when the time of its request is up", async () => {
    expect(await collector.collectTooLate("creator")).toEqual({ kind: "not-started" });
    expect(rpc.calls).toEqual([]);
  });

  it("warns the operator when the fee payer can pay for few more", async () => {
    const warning = "the fee payer can pay for fewer than 100 more collects: fund it";
    await collector.collect("artist001");
    expect(collector.logLines.join()).not.toContain("fund it");
    chain.setBalance(collector.feePayer, chain.rentExemptMinimum(0) + 50n * 5_000n);
    await collector.collect("artist002");
    await expect.poll(() => collector.logLines.join()).toContain(warning);
  });

  it("is refused when the fee payer cannot pay for it beside those in flight", async () => {
    chain.setBalance(collector.feePayer, chain.rentExemptMinimum(0) + 3n * 5_100n);
    // Nothing lands until all have been decided.
    const lift = rpc.faults.add({ when: isMethod("sendTransaction"), then: BEHIND });
    const handles = ["artist001", "artist002", "artist003", "artist004", "artist005", "artist006"];
    const kinds: string[] = [];
    const collects = handles.map(async (handle) => kinds.push((await collector.collect(handle)).kind));
    await expect.poll(() => kinds).toEqual(Array(3).fill("fee-payer-short"));
    lift();
    await Promise.all(collects);
    expect(kinds.slice(3)).toEqual(Array(3).fill("collected"));
    expect(sandbox.landedCollects()).toHaveLength(3);
  });

  it("pays the price of the recent slots, within the cap", async () => {
    const feeOf = async (handle: string) => {
      const outcome = await collector.collect(handle);
      return chain.landed(outcome.kind === "collected" ? outcome.signature : "")!.feeLamports;
    };
    expect(await feeOf("artist001")).toBeLessThan(5_050n);
    chain.setPriorityFee(1_000_000);
    const dear = await feeOf("artist002");
    expect(dear).toBeGreaterThan(9_000n);
    expect(dear).toBeLessThan(55_000n);
    chain.setPriorityFee(1_000_000_000);
    const capped = await feeOf("artist003");
    expect(capped).toBeGreaterThan(54_000n);
    expect(capped).toBeLessThanOrEqual(55_000n);
  });

  it("charges its budget the fee that it signed for, whatever fee a node reports", async () => {
    collector = createSandboxCollector(sandbox, { env: { FEE_BUDGET_LAMPORTS_PER_HOUR: "20000" } });
    const { address } = sandbox.account("creator");
    const lie = {
      transaction: { message: { accountKeys: [address] } },
      meta: { err: null, fee: 1_000_000, preBalances: [2], postBalances: [1] },
    };
    rpc.faults.add({ when: isMethod("getTransaction"), times: 1, then: answer(lie) });
    expect(await collector.collect("creator")).toEqual({ kind: "nothing" });
    expect(await collector.collect("artist001")).toMatchObject({ kind: "collected" });
  });

  it("is refused when the hour's budget is used up, and logs it", async () => {
    collector = createSandboxCollector(sandbox, { env: { FEE_BUDGET_LAMPORTS_PER_HOUR: "5000" } });
    expect(await collector.collect("creator")).toEqual({ kind: "budget-spent" });
    expect(collector.logLines.join()).toMatch(/"level":50.*the hour's budget for fees is used up/);
    expect(sends()).toEqual([]);
  });
});

describe("a caller whose time is up", () => {
  it("hears the signature; the transaction goes on, and the next collect reports it and signs none", async () => {
    const lift = rpc.faults.add({ when: isMethod("getSignatureStatuses"), then: "reset" });
    const first = collector.collect("creator");
    await wasSent();
    const [signature] = collector.openSignatures();
    expect(await collector.collectInAMillisecond("creator")).toEqual({ kind: "outcome-unknown", signature });
    await expect.poll(() => chain.landed(signature!)).toBeDefined();

    const next = collector.collect("creator");
    lift();
    expect(await next).toEqual({ ...ALL_FEES, signature });
    expect(await first).toEqual(await next);
    expect(chain.balance(sandbox.account("creator").address)).toBe(8_300_000_000n);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it.each(["getMultipleAccounts", "simulateTransaction", "getLatestBlockhash"])(
    "at %s, before anything is signed, can rely on it that nothing is sent",
    async (method) => {
      const lift = rpc.faults.add({ when: isMethod(method), then: BEHIND });
      const other = collector.collect("creator");
      await wasCalled(method);
      expect(await collector.collectInAMillisecond("creator")).toEqual({ kind: "not-sent" });
      expect(collector.openSignatures()).toEqual([]);
      lift();
      expect(await other).toEqual({ kind: "abandoned" });
      await collector.settled();
      expect(sends()).toEqual([]);

      expect(await collector.collect("creator")).toMatchObject(ALL_FEES);
      expect(sandbox.landedCollects()).toHaveLength(1);
    },
  );

  it("hears that its transaction landed when its amounts cannot be read", async () => {
    const lift = rpc.faults.add({ when: isMethod("getTransaction"), then: answer(null) });
    const first = collector.collect("creator");
    await wasCalled("getTransaction");
    const [landed] = sandbox.landedCollects();
    const { signature } = landed!;
    expect(await collector.collectInAMillisecond("creator")).toEqual({
      kind: "landed-unreadable",
      signature,
    });
    lift();
    expect(await first).toEqual({ ...ALL_FEES, signature });
  });
});

let server: RedisServer;
let redis: Redis;

describeWithRedis("a collect whose lease expires before it is sent", () => {
  eachWithRedis((...started) => {
    [server, redis] = started;
  });

  /** A replica that is held up before it signs, and another that has taken over its lock. */
  async function startBoth() {
    const slow = createSandboxCollector(sandbox, { redis });
    const fast = createSandboxCollector(sandbox, { redis, rpcs: [sandbox.secondRpc] });
    const lift = rpc.faults.add({ when: isMethod("getLatestBlockhash"), then: BEHIND });
    const slowCollect = slow.collect("creator");
    await wasCalled("getLatestBlockhash");
    await server.command("DEL", `tributary:collect:${slow.feePayer}:${sandbox.account("creator").address}`);
    return { slow, fast, lift, slowCollect };
  }
  const spentFees = async (feePayer: string) => {
    const entries: string[] = await server.command("HGETALL", `tributary:fees:${feePayer}`);
    return entries.filter((_, i) => i % 2).reduce((sum, lamports) => sum + Number(lamports), 0);
  };

  it("follows the transaction of the replica that took over, and sends none of its own", async () => {
    const { slow, fast, lift, slowCollect } = await startBoth();
    sandbox.secondRpc.faults.add({ when: isMethod("getSignatureStatuses"), then: BEHIND });
    const fastCollect = fast.collect("creator");
    await expect.poll(() => sendsTo(sandbox.secondRpc).length).toBeGreaterThan(0);
    lift();
    expect(await slowCollect).toMatchObject(ALL_FEES);
    sandbox.secondRpc.faults.clear();
    expect(await fastCollect).toEqual(await slowCollect);
    const bytes = sendsTo(sandbox.secondRpc)[0]!.params[0];
    for (const { params } of sends()) expect(params[0]).toBe(bytes);
    expect(sandbox.landedCollects()).toHaveLength(1);
    const [landed] = sandbox.landedCollects();
    expect(await spentFees(slow.feePayer)).toBe(Number(landed!.feeLamports));
  });

  it("finds nothing to collect when the other replica is done already", async () => {
    const { fast, lift, slowCollect } = await startBoth();
    expect(await fast.collect("creator")).toMatchObject(ALL_FEES);
    lift();
    expect(await slowCollect).toEqual({ kind: "nothing" });
    expect(sends()).toEqual([]);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });

  it("does not collect again once a caller has given up", async () => {
    const { slow, fast, lift, slowCollect } = await startBoth();
    expect(await slow.collectInAMillisecond("creator")).toEqual({ kind: "not-sent" });
    expect(await fast.collect("creator")).toMatchObject(ALL_FEES);
    lift();
    expect(await slowCollect).toEqual({ kind: "abandoned" });
    expect(sends()).toEqual([]);
    expect(sandbox.landedCollects()).toHaveLength(1);
  });
});

describe("a collect over HTTP", () => {
  let service: World;
  afterEach(() => service.close());
  const sendsOfService = () => sendsTo(service.sandbox.rpc);

  it("shares its time with the others of its request, so that all are answered", async () => {
    service = await startWorld({ COLLECT_TIMEOUT_MS: "1000" });
    const { faults } = service.sandbox.rpc;
    faults.add({ when: isMethod("getSignatureStatuses"), then: { status: 503, body: "" } });
    const ids = ["creator", "artist001", "artist002"].map((handle) => service.account(handle).id);
    // A slow machine may take several requests to get as far as sending; from then on it stays in flight.
    await expect
      .poll(async () => {
        await service.collect(ids[0]!);
        return sendsOfService().length;
      })
      .toBeGreaterThan(0);
    const fields = ids.map((id, i) => `c${i}: collect(socialId: "${id}") { success }`);
    const { body } = await service.graphql(`mutation { ${fields.join(" ")} }`);
    const messages: string[] = body.errors.map(({ message }: { message: string }) => message);
    expect(messages[0]).toMatch(/^It is not known yet whether transaction/);
    expect(messages).toHaveLength(3);
    // A timer may fire within a millisecond of the deadline, and then the next collect is given up at once.
    for (const message of messages.slice(1))
      expect(message).toMatch(/timed out before this collect started|No transaction was sent/);
    expect(new Set(sendsOfService().map(({ params }) => params[0])).size).toBe(1);
    faults.clear();
  });

  it("is not cancelled when its caller leaves", async () => {
    service = await startWorld();
    const { id, address } = service.account("creator");
    const leaving = new AbortController();
    const collect = fetch(`${service.url}/collect`, {
      method: "POST",
      body: JSON.stringify({ socialId: id }),
      signal: leaving.signal,
    });
    // Not before it is sent, and not after it is answered.
    service.sandbox.rpc.faults.add({ when: isMethod("getSignatureStatuses"), then: BEHIND });
    await expect.poll(() => sendsOfService().length).toBeGreaterThan(0);
    leaving.abort();
    await expect(collect).rejects.toThrow();
    service.sandbox.rpc.faults.clear();
    await service.gateway.settled();
    expect(service.sandbox.chain.balance(address)).toBe(8_300_000_000n);
  });

  it("uses the next chain endpoint when one does not answer", async () => {
    service = await startWorld({ SOLANA_RPC_URL: `http://127.0.0.1:9,${rpc.url}` });
    const { status, body } = await service.request("/readyz");
    expect([status, body]).toEqual([200, { status: "ok" }]);
    expect(service.chainCalls()).toEqual([]);
    expect(rpc.calls.some(isMethod("getSlot"))).toBe(true);
  });
});
