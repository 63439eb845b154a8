import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { ContractError } from "../../src/contract/errors.ts";
import type { Redis } from "../../src/upstream/redis.ts";
import { createAccountCache, type KnownAccount } from "../../src/social/account-cache.ts";
import { describeWithRedis, eachWithRedis } from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";

const found = { id: "1523400000000000123", handle: "Creator" };
const apiUrl = new URL("http://network");
const notFound = new ContractError("SOCIAL_NOT_FOUND");

describe("the cache of accounts", () => {
  it("believes what was found for as long as it is told, what was not found for 60 s at most, and no failure", () => {
    vi.useFakeTimers();
    vi.advanceTimersByTime(1); // The cache takes a start at 0 for none.
    const cache = createAccountCache({ apiUrl, cacheSeconds: 300, redis: undefined });
    cache.remember(
      new Map<string, KnownAccount>([
        ["creator", found],
        ["nobody", notFound],
        ["failed", new ContractError("SOCIAL_API_UNAVAILABLE")],
      ]),
    );
    const known = () => ["creator", "nobody", "failed"].map(cache.get);
    expect(known()).toEqual([found, notFound, undefined]);
    vi.advanceTimersByTime(60_001);
    expect(known()).toEqual([found, undefined, undefined]);
    vi.advanceTimersByTime(240_000);
    expect(known()).toEqual([undefined, undefined, undefined]);
    vi.useRealTimers();
  });

  it("believes nothing when it is told to for 0 s", () => {
    const cache = createAccountCache({ apiUrl, cacheSeconds: 0, redis: undefined });
    cache.remember(new Map([["creator", found]]));
    expect(cache.get("creator")).toBeUndefined();
  });
});

const NOTHING = { text: "return 1", answer: z.int() };

let server: RedisServer;
let redis: Redis;

describeWithRedis("the cache of accounts in Redis", () => {
  eachWithRedis((...started) => {
    [server, redis] = started;
  });
  const cacheOf = (cacheSeconds: number) => createAccountCache({ apiUrl, cacheSeconds, redis });
  const learnt = async (...handles: string[]) => {
    const cache = cacheOf(300);
    await cache.learn(handles);
    return handles.map(cache.get);
  };

  /** A replica that remembers answers, as it does once it has asked what others know. */
  const remember = async (answers: ReadonlyMap<string, KnownAccount>) => {
    const cache = cacheOf(300);
    await cache.learn([...answers.keys()]);
    cache.remember(answers);
  };

  it("tells other replicas what one has learnt", async () => {
    await remember(
      new Map<string, KnownAccount>([
        ["creator", found],
        ["nobody", notFound],
        ["failed", new ContractError("SOCIAL_API_UNAVAILABLE")],
      ]),
    );
    const [creator, nobody, failed, unknown] = await learnt("creator", "nobody", "failed", "unknown");
    expect([creator, failed, unknown]).toEqual([found, undefined, undefined]);
    expect((nobody as ContractError).code).toBe("SOCIAL_NOT_FOUND");
    expect(await server.command("PTTL", "tributary:account:network:nobody")).toBeLessThanOrEqual(60_000);
    expect(await server.command("PTTL", "tributary:account:network:creator")).toBeLessThanOrEqual(300_000);
  });

  it("lets no replica believe it for longer than the one that asked", async () => {
    await remember(new Map([["creator", found]]));
    await server.command("PEXPIRE", "tributary:account:network:creator", 500);
    const cache = cacheOf(300);
    await cache.learn(["creator"]);
    await expect.poll(() => cache.get("creator"), { timeout: 5_000 }).toBeUndefined();
  });

  it("does so too when Redis has slept on it", async () => {
    const cache = cacheOf(1);
    await cache.learn(["creator"]);
    server.freeze();
    cache.remember(new Map([["creator", found]]));
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    server.thaw();
    await expect.poll(() => redis.run(NOTHING, [], []), { timeout: 10_000 }).toBe(1);
    expect(await server.command("GET", "tributary:account:network:creator")).toBeNull();
  });

  it("keeps accounts of different networks apart", async () => {
    await remember(new Map([["creator", found]]));
    const other = createAccountCache({ apiUrl: new URL("http://other"), cacheSeconds: 300, redis });
    await other.learn(["creator"]);
    expect(other.get("creator")).toBeUndefined();
  });

  it.each([
    ["of another handle", JSON.stringify({ ...found, handle: "Other" })],
    ["with an id that is none", JSON.stringify({ ...found, id: "007" })],
    ["that is no JSON", "{"],
  ])("takes no account %s on trust", async (_name, value) => {
    await server.command("SET", "tributary:account:network:creator", value, "PX", 60_000);
    expect(await learnt("creator")).toEqual([undefined]);
  });

  it("takes no account that would be believed for ever", async () => {
    await server.command("SET", "tributary:account:network:creator", JSON.stringify(found));
    expect(await learnt("creator")).toEqual([undefined]);
  });
});
