import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { BOTH_ENDPOINTS, startWorld, type World } from "../../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld({ RPC_TIMEOUT_MS: "2000", COLLECT_TIMEOUT_MS: "20000" });
});
afterEach(() => world.close());

const refused = {
  status: 200,
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32005, message: "Node is behind" } }),
};
const isMethod = (name: string) => (call: { method: string }) => call.method === name;
const sends = () => world.sandbox.rpc.calls.filter(isMethod("sendTransaction"));
/** The collects that landed, well or badly. */
const landedCollects = () =>
  world.sandbox.chain
    .ledger()
    .filter(({ logs }) =>
      logs.some((line) => line.includes("6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P invoke")),
    );

describe("a transaction under way", () => {
  it("is sent again, the same bytes, until it lands", async () => {
    world.sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), times: 2, then: refused });
    const { body } = await world.collect(world.account("creator").id);
    expect(body).toMatchObject({ success: true, collected: "3.1000" });
    expect(sends().length).toBeGreaterThanOrEqual(3);
    expect(new Set(sends().map(({ params }) => params[0])).size).toBe(1);
    expect(landedCollects()).toHaveLength(1);
  });

  it("counts as sent when the answer to its sending is lost", async () => {
    world.sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), times: 1, then: "reset", after: true });
    expect((await world.collect(world.account("creator").id)).body).toMatchObject({
      success: true,
      collected: "3.1000",
    });
    expect(landedCollects()).toHaveLength(1);
  });

  it("is followed through reads that fail and through a node that forgets it for a while", async () => {
    world.sandbox.rpc.faults.add({ when: isMethod("getSignatureStatuses"), times: 2, then: "reset" });
    world.sandbox.rpc.faults.add({
      when: isMethod("getTransaction"),
      times: 2,
      then: { status: 200, body: JSON.stringify({ jsonrpc: "2.0", id: 1, result: null }) },
    });
    expect((await world.collect(world.account("creator").id)).body).toMatchObject({
      success: true,
      collected: "3.1000",
    });
    expect(landedCollects()).toHaveLength(1);
  });

  it("is reported dead only when it can no longer land, and the next collect signs anew", async () => {
    const lift = world.sandbox.rpc.faults.add({ when: isMethod("sendTransaction"), then: refused });
    const first = world.collect(world.account("creator").id);
    await expect.poll(() => sends().length).toBe(1);
    world.sandbox.chain.advanceSlots(200);
    const { status, body } = await first;
    expect([status, body.error]).toEqual([500, "COLLECT_FAILED"]);
    expect(body.message).toMatch(/^Transaction \w+ did not land and can no longer do so/);
    const dead = sends()[0]!.params[0];
    lift();

    expect((await world.collect(world.account("creator").id)).body).toMatchObject({
      success: true,
      collected: "3.1000",
    });
    expect(sends().at(-1)!.params[0]).not.toBe(dead);
    expect(landedCollects()).toHaveLength(1);
  });

  it("is not taken for dead on the word of a node that has not seen its blockhash expire", async () => {
    await world.close();
    world = await startWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS, COLLECT_TIMEOUT_MS: "20000" });
    const isStatus = isMethod("getSignatureStatuses");
    const stale = { jsonrpc: "2.0", id: 1, result: { context: { slot: 1 }, value: [null] } };
    world.sandbox.rpc.faults.add({ when: isStatus, then: { status: 429, body: "" } });
    world.secondRpc.faults.add({ when: isStatus, then: { status: 200, body: JSON.stringify(stale) } });
    const collect = world.collect(world.account("creator").id);
    await expect.poll(landedCollects, { timeout: 5_000 }).toHaveLength(1);
    world.sandbox.chain.advanceSlots(250);
    const searches = () =>
      world.secondRpc.calls.filter(
        (call) => isStatus(call) && (call.params[1] as any).searchTransactionHistory === true,
      );
    await expect.poll(searches, { timeout: 15_000 }).not.toEqual([]);
    world.sandbox.rpc.faults.clear();
    world.secondRpc.faults.clear();
    expect((await collect).body).toMatchObject({ success: true, collected: "3.1000" });
    expect(landedCollects()).toHaveLength(1);
  });

  it("that fails on chain is COLLECT_FAILED, and its account rests while others are collected", async () => {
    // Between simulation and landing the address and its vault have become too poor for it to exist.
    const { chain, rpc } = world.sandbox;
    const { id, address, creatorVault } = world.account("creator");
    const [before, held] = [chain.balance(address), chain.balance(creatorVault)];
    rpc.faults.add({
      times: 1,
      when({ method }) {
        if (method !== "getLatestBlockhash") return false;
        chain.setBalance(address, 0n);
        chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 100_000n);
        return true;
      },
    });
    const { status, body } = await world.collect(id);
    chain.setBalance(address, before);
    chain.setBalance(creatorVault, held);
    expect([status, body.error]).toEqual([500, "COLLECT_FAILED"]);
    expect(landedCollects().map(({ err }) => err !== null)).toEqual([true]);

    const next = await world.collect(id);
    expect([next.status, next.body.error]).toEqual([500, "COLLECT_FAILED"]);
    expect(next.body.message).toMatch(
      /failed on the chain, .* No other was sent: try again in \d\d seconds\.$/,
    );
    expect((await world.collect(world.account("artist001").id)).status).toBe(200);
    chain.setBalance(creatorVault, 0n);
    expect((await world.collect(id)).body.error).toBe("NOTHING_TO_COLLECT");
    expect(landedCollects()).toHaveLength(2);
  });

  it("is known to have landed although another question about it hangs", async () => {
    const nothing = {
      status: 200,
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, result: { context: { slot: 1 }, value: [null] } }),
    };
    world.sandbox.rpc.faults.add({ when: isMethod("getSignatureStatuses"), times: 6, then: nothing });
    world.sandbox.rpc.faults.add({ when: isMethod("getEpochInfo"), then: "hang" });
    const { body } = await world.collect(world.account("creator").id);
    expect(body).toMatchObject({ success: true, collected: "3.1000" });
  });

  it("that somebody on the chain was faster than has collected nothing", async () => {
    const { chain, rpc } = world.sandbox;
    const { creatorVault, id } = world.account("creator");
    rpc.faults.add({ when: isMethod("getLatestBlockhash"), times: 1, delayMs: 200 });
    const collect = world.collect(id);
    await expect.poll(() => rpc.calls.some(isMethod("getLatestBlockhash"))).toBe(true);
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0));
    const { status, body } = await collect;
    expect([status, body.error, body.collected]).toEqual([400, "NOTHING_TO_COLLECT", "0.0000"]);
  });
});

describe("a collect", () => {
  it("is not put off by a withdrawal from the address in the same moment", async () => {
    const { chain, rpc } = world.sandbox;
    rpc.faults.add({ when: isMethod("simulateTransaction"), times: 1, delayMs: 200 });
    const collect = world.collect(world.account("creator").id);
    await expect.poll(() => rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
    chain.setBalance(world.account("creator").address, 1_000_000_000n);
    expect((await collect).body).toMatchObject({ success: true, collected: "3.1000", newBalance: "4.1000" });
  });

  it("is refused at once when too many others are under way", async () => {
    await world.close();
    world = await startWorld();
    const hang = world.sandbox.rpc.faults.add({ when: isMethod("getMultipleAccounts"), then: "hang" });
    const isRefused = (message: string) => message.startsWith("Too many collects are under way");
    const messages: string[] = [];
    const collects = Array.from({ length: 205 }, async (_, i) => {
      const { body } = await world.collect(String(10n ** 18n + BigInt(i)));
      messages.push(body.message);
    });
    await expect.poll(() => messages.filter(isRefused).length, { timeout: 20_000 }).toBe(5);
    expect(messages).toHaveLength(5); // the others wait for the chain
    hang();
    await Promise.all(collects);
    expect(messages.filter(isRefused)).toHaveLength(5);
  });

  it("shares its time with the others of its request, so that all are answered", async () => {
    await world.close();
    world = await startWorld({ COLLECT_TIMEOUT_MS: "1000" });
    world.sandbox.rpc.faults.add({ when: isMethod("getSignatureStatuses"), then: { status: 503, body: "" } });
    const ids = ["creator", "artist001", "artist002"].map((handle) => world.account(handle).id);
    const fields = ids.map((id, i) => `c${i}: collect(socialId: "${id}") { success }`);
    const { body } = await world.graphql(`mutation { ${fields.join(" ")} }`);
    const messages = body.errors.map(({ message }: { message: string }) => message);
    expect(messages[0]).toMatch(/^It is not known yet whether transaction/);
    expect(messages.slice(1)).toEqual(Array(2).fill(expect.stringContaining("was not begun")));
    world.sandbox.rpc.faults.clear();
  });

  it("warns the operator when the fee payer can pay for few more", async () => {
    const { feePayer } = readConfig(world.sandbox.env).secrets;
    const address = feePayer.publicKey.toBase58();
    await world.collect(world.account("artist001").id);
    expect(world.logLines.join()).not.toContain("fund it");
    world.sandbox.chain.setBalance(address, 650_240n + 50n * 5_000n);
    await world.collect(world.account("artist002").id);
    expect(world.logLines.join()).toContain(
      "the fee payer can pay for fewer than 100 more collects: fund it",
    );
  });

  it("is refused at once when the fee payer cannot pay for it beside those under way", async () => {
    const { chain, rpc } = world.sandbox;
    const { feePayer } = readConfig(world.sandbox.env).secrets;
    chain.setBalance(feePayer.publicKey.toBase58(), chain.rentExemptMinimum(0) + 3n * 5_100n);
    // All are rehearsed before the first is signed.
    rpc.faults.add({ when: isMethod("getLatestBlockhash"), delayMs: 200 });
    const handles = ["artist001", "artist002", "artist003", "artist004", "artist005", "artist006"];
    const answers = await Promise.all(handles.map((handle) => world.collect(world.account(handle).id)));
    expect(answers.map(({ body }) => body.error ?? "collected").sort()).toEqual([
      ...Array.from({ length: 3 }, () => "INSUFFICIENT_FUNDS"),
      ...Array.from({ length: 3 }, () => "collected"),
    ]);
    expect(landedCollects()).toHaveLength(3);
  });

  it("pays the price of the recent slots, within the cap", async () => {
    const feeOf = async (handle: string) => {
      const { body } = await world.collect(world.account(handle).id);
      return world.sandbox.chain.landed(body.txSignature)!.feeLamports;
    };
    expect(await feeOf("artist001")).toBeLessThan(5_050n);
    world.sandbox.chain.setPriorityFee(1_000_000);
    const dear = await feeOf("artist002");
    expect(dear).toBeGreaterThan(9_000n);
    expect(dear).toBeLessThan(55_000n);
    world.sandbox.chain.setPriorityFee(1_000_000_000);
    const capped = await feeOf("artist003");
    expect(capped).toBeGreaterThan(54_000n);
    expect(capped).toBeLessThanOrEqual(55_000n);
  });

  it("pays out of its budget what it has signed for, whatever a node says that it has cost", async () => {
    await world.close();
    world = await startWorld({ COLLECT_TIMEOUT_MS: "20000", FEE_BUDGET_LAMPORTS_PER_HOUR: "20000" });
    const { address } = world.account("creator");
    const lie = {
      transaction: { message: { accountKeys: [address] } },
      meta: { err: null, fee: 1_000_000, preBalances: [2], postBalances: [1] },
    };
    world.sandbox.rpc.faults.add({
      when: isMethod("getTransaction"),
      times: 1,
      then: { status: 200, body: JSON.stringify({ jsonrpc: "2.0", id: 1, result: lie }) },
    });
    expect((await world.collect(world.account("creator").id)).body.error).toBe("NOTHING_TO_COLLECT");
    expect((await world.collect(world.account("artist001").id)).body.success).toBe(true);
  });

  it("says that its transaction landed when no more can be read of it", async () => {
    await world.close();
    world = await startWorld({ COLLECT_TIMEOUT_MS: "1500" });
    const nothing = { status: 200, body: JSON.stringify({ jsonrpc: "2.0", id: 1, result: null }) };
    world.sandbox.rpc.faults.add({ when: isMethod("getTransaction"), then: nothing });
    const { status, body } = await world.collect(world.account("creator").id);
    expect([status, body.error]).toEqual([500, "COLLECT_FAILED"]);
    expect(body.message).toMatch(/^Transaction \w+ landed, but/);
  });
});

describe("a caller whose time is up", () => {
  beforeEach(async () => {
    await world.close();
    world = await startWorld({ RPC_TIMEOUT_MS: "2000", COLLECT_TIMEOUT_MS: "1500" });
  });

  it("is told the signature; the transaction goes on, and the next collect reports it and signs none", async () => {
    const { id, address } = world.account("creator");
    const lift = world.sandbox.rpc.faults.add({ when: isMethod("getSignatureStatuses"), then: "reset" });
    const { status, body } = await world.collect(id);
    expect([status, body.error]).toEqual([500, "COLLECT_FAILED"]);
    const signature = /transaction (\w+)/.exec(body.message)?.[1];
    expect(world.sandbox.chain.landed(signature!)).toBeDefined();

    const second = world.collect(id);
    lift();
    expect((await second).body).toEqual({
      success: true,
      collected: "3.1000",
      newBalance: "8.3000",
      txSignature: signature,
    });
    expect(world.sandbox.chain.balance(address)).toBe(8_300_000_000n);
    expect(landedCollects()).toHaveLength(1);
  });

  it("before anything was signed can be sure that nothing will be", async () => {
    world.sandbox.rpc.faults.add({ when: isMethod("simulateTransaction"), delayMs: 600 });
    world.sandbox.rpc.faults.add({ when: isMethod("getMultipleAccounts"), delayMs: 600 });
    world.sandbox.rpc.faults.add({ when: isMethod("getLatestBlockhash"), delayMs: 600 });
    const { body } = await world.collect(world.account("creator").id);
    expect(body).toEqual({
      error: "COLLECT_FAILED",
      message: "The chain did not answer in time. No transaction was sent.",
    });
    await world.gateway.settled();
    expect(sends()).toEqual([]);
  });

  it("cancels nothing by going away", async () => {
    const { id, address } = world.account("creator");
    const leaving = new AbortController();
    const collect = fetch(`${world.url}/collect`, {
      method: "POST",
      body: JSON.stringify({ socialId: id }),
      signal: leaving.signal,
    });
    await expect.poll(() => sends().length).toBe(1);
    leaving.abort();
    await expect(collect).rejects.toThrow();
    await world.gateway.settled();
    expect(world.sandbox.chain.balance(address)).toBe(8_300_000_000n);
  });
});

describe("several endpoints", () => {
  it("are asked in their order, the next when one does not answer", async () => {
    const second = await startWorld({
      SOLANA_RPC_URL: `http://127.0.0.1:9,${world.sandbox.env.SOLANA_RPC_URL}`,
    });
    try {
      const { status, body } = await second.request("/readyz");
      expect([status, body]).toEqual([200, { status: "ok" }]);
      expect(second.chainCalls()).toEqual([]);
      expect(world.chainCalls()).toContain("getSlot");
    } finally {
      await second.close();
    }
  });
});
