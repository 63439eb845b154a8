import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createClaims } from "../../../src/chain/collect/account-lock.ts";
import type { Redis } from "../../../src/upstream/redis.ts";
import { describeWithRedis, eachWithRedis } from "../../support/describe-with-redis.ts";
import type { RedisServer } from "../../support/redis-server.ts";

const transaction = { base64: "AQID", signature: "sig", lastValidBlockHeight: 150 };
const KEY = "tributary:collect:payer:address";
const NOTHING = { text: "return 1", answer: z.int() };
const never = () => false;

describe("a claim without Redis", () => {
  it("is granted", async () => {
    const claims = createClaims({ feePayer: "payer", redis: undefined });
    for (let i = 0; i < 2; i++) {
      const claim = await claims.claim("address", never);
      expect([claim.signedElsewhere, claim.landedSlot, await claim.keep(transaction)]).toEqual([
        undefined,
        0,
        true,
      ]);
    }
  });
});

let server: RedisServer;
let redis: Redis;

describeWithRedis("a claim in Redis", () => {
  eachWithRedis((...started) => {
    [server, redis] = started;
  });
  const claim = (isGivenUp = never) => createClaims({ feePayer: "payer", redis }).claim("address", isGivenUp);
  /** Resolves once somebody waits for the claim, who has then seen who holds it. */
  const somebodyWaits = () => new Promise((resolve) => setTimeout(resolve, 50));

  it("is granted to one at a time: the next waits until it is given up", async () => {
    const first = await claim();
    let hasSecond = false;
    const second = claim().then((granted) => {
      hasSecond = true;
      return granted;
    });
    await somebodyWaits();
    expect(hasSecond).toBe(false);
    first.end();
    expect((await second).signedElsewhere).toBeUndefined();
  });

  it("is not waited for any longer than its caller waits", async () => {
    await claim();
    let polls = 0;
    await expect(claim(() => ++polls > 2)).rejects.toThrow("longer to sign than a caller waits");
  });

  it("expires when nothing is signed, and not for a week when something is", async () => {
    const first = await claim();
    const ttl = await server.command("PTTL", KEY);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(15_000);
    await first.keep(transaction);
    expect(await server.command("PTTL", KEY)).toBeGreaterThan(6 * 24 * 3_600_000);
  });

  it("tells of the transaction that was signed, whoever asks and however late", async () => {
    const first = await claim();
    expect(await first.keep(transaction)).toBe(true);
    expect((await claim()).signedElsewhere).toEqual(transaction);
    expect((await claim()).signedElsewhere).toEqual(transaction);
  });

  it("tells who waited for it of its transaction, even when its fate is known already", async () => {
    const first = await claim();
    const second = claim();
    await somebodyWaits();
    await first.keep(transaction);
    first.end(42);
    expect((await second).signedElsewhere).toEqual(transaction);
  });

  it("is free once the fate is known, and the next knows the slot", async () => {
    const first = await claim();
    await first.keep(transaction);
    first.end(42);
    const second = await claim();
    expect([second.signedElsewhere, second.landedSlot]).toEqual([undefined, 42]);
    second.end();
    const third = await claim();
    await third.keep(transaction);
    third.end(41); // As a slow follower of an earlier transaction would.
    expect((await claim()).landedSlot).toBe(42);
    expect(await server.command("PTTL", "tributary:landed:payer:address")).toBeLessThanOrEqual(60_000);
  });

  it("can be ended by whoever has learnt its transaction's fate", async () => {
    await (await claim()).keep(transaction);
    (await claim()).end();
    expect((await claim()).signedElsewhere).toBeUndefined();
  });

  it("that has expired lets nothing be sent once another has claimed the account", async () => {
    const slow = await claim();
    await server.command("DEL", KEY);
    const next = await claim();
    expect(await slow.keep(transaction)).toBe(false);
    slow.end();
    expect(await next.keep({ ...transaction, signature: "next" })).toBe(true);
    expect((await claim()).signedElsewhere?.signature).toBe("next");
  });

  it("that has expired still holds while nobody else has claimed the account", async () => {
    const slow = await claim();
    await server.command("DEL", KEY);
    expect(await slow.keep(transaction)).toBe(true);
    expect((await claim()).signedElsewhere).toEqual(transaction);
  });

  it("that cannot be read fails one collect, and not the next", async () => {
    await server.command("HSET", KEY, "token", "t", "transaction", "{");
    await expect(claim()).rejects.toThrow("cannot be read");
    expect((await claim()).signedElsewhere).toBeUndefined();
  });

  it("is not forgotten for the many that are ended while Redis is away", async () => {
    const first = await claim();
    await first.keep(transaction);
    server.freeze();
    first.end(42);
    const others = createClaims({ feePayer: "payer", redis });
    for (let i = 0; i < 10_001; i++) (await others.claim(`other${i}`, never)).end();
    server.thaw();
    await expect.poll(() => redis.run(NOTHING, [], []), { timeout: 10_000 }).toBe(1);
    expect((await claim()).signedElsewhere).toBeUndefined();
  });

  it("is granted while Redis is away, and given up when it is back", async () => {
    server.freeze();
    const first = await claim();
    expect([first.signedElsewhere, await first.keep(transaction)]).toEqual([undefined, true]);
    first.end();
    server.thaw();
    await expect.poll(() => redis.run(NOTHING, [], []), { timeout: 10_000 }).toBe(1);
    const second = await claim();
    expect(second.signedElsewhere).toBeUndefined();
  });
});
