import { describe, expect, it, vi } from "vitest";
import { createAccountCache, type CachedAccount } from "../../src/social/account-cache.ts";
import { toHandleKey } from "../../src/social/account.ts";
import { SocialError } from "../../src/social/social-error.ts";
import {
  describeWithRedis,
  eachWithRedis,
  PING,
  redis,
  server,
} from "../support/describe-with-redis.ts";

const profile = {
  name: "The Creator",
  verified: true,
  followers: 5,
  pictureUrl: "https://a.example/b.png",
};
const found = { id: "1523400000000000123", handle: "Creator", profile };
const socialApiUrl = new URL("http://network");
const notFound = new SocialError({ kind: "not-found" });
const unreachable = new SocialError({ kind: "unreachable" });

describe("the account cache", () => {
  it("keeps an account for the configured time and not-found for at most 60 s, and does not keep failures", () => {
    vi.useFakeTimers();
    vi.advanceTimersByTime(1); // The cache treats a start time of 0 as unset.
    const cache = createAccountCache({
      socialApiUrl,
      socialCacheSeconds: 300,
      redis: undefined,
    });
    cache.store(
      new Map<string, CachedAccount>([
        ["@creator", found],
        ["@nobody", notFound],
        ["@failed", unreachable],
      ]),
    );
    const cached = () => ["@creator", "@nobody", "@failed"].map(cache.get);
    expect(cached()).toEqual([found, notFound, undefined]);
    vi.advanceTimersByTime(60_001);
    expect(cached()).toEqual([found, undefined, undefined]);
    vi.advanceTimersByTime(240_000);
    expect(cached()).toEqual([undefined, undefined, undefined]);
    vi.useRealTimers();
  });

  it("keeps nothing when the configured time is 0 s", () => {
    const cache = createAccountCache({ socialApiUrl, socialCacheSeconds: 0, redis: undefined });
    cache.store(new Map([["@creator", found]]));
    expect(cache.get("@creator")).toBeUndefined();
  });
});

describeWithRedis("the account cache in Redis", () => {
  eachWithRedis();
  const cacheOf = (socialCacheSeconds: number) =>
    createAccountCache({ socialApiUrl, socialCacheSeconds, redis });
  const fetched = async (...handles: string[]) => {
    const keys = handles.map(toHandleKey);
    const cache = cacheOf(300);
    await cache.fetchFromRedis(keys);
    return keys.map(cache.get);
  };

  /** Resolves once Redis has the answers: it runs scripts in order. */
  const store = async (answers: ReadonlyMap<string, CachedAccount>) => {
    cacheOf(300).store(answers);
    await redis.run(PING, {});
  };

  it("shares the answers that one replica stored with the other replicas", async () => {
    await store(
      new Map<string, CachedAccount>([
        ["@creator", found],
        ["@nobody", notFound],
        ["@failed", unreachable],
      ]),
    );
    const [creator, nobody, failed, unknown] = await fetched(
      "creator",
      "nobody",
      "failed",
      "unknown",
    );
    expect([creator, failed, unknown]).toEqual([found, undefined, undefined]);
    expect((nobody as SocialError).failure.kind).toBe("not-found");
    expect(
      await server.command("PTTL", "tributary:v3:account:{network}:nobody"),
    ).toBeLessThanOrEqual(60_000);
    expect(
      await server.command("PTTL", "tributary:v3:account:{network}:creator"),
    ).toBeLessThanOrEqual(300_000);
  });

  it("expires for a replica with a lower SOCIAL_CACHE_SECONDS by that replica's time", async () => {
    const answers = new Map<string, CachedAccount>([
      ["@creator", found],
      ["@nobody", notFound],
    ]);
    const keys = [...answers.keys()];
    /**
     * What a replica with this SOCIAL_CACHE_SECONDS reads, when the entries were written
     * `ageSeconds` ago.
     */
    const read = async (socialCacheSeconds: number, ageSeconds: number) => {
      await store(answers);
      for (const key of keys) {
        const redisKey = `tributary:v3:account:{network}:${key.slice(1)}`;
        const ttl: number = await server.command("PTTL", redisKey);
        await server.command("PEXPIRE", redisKey, ttl - 1_000 * ageSeconds);
      }
      const cache = cacheOf(socialCacheSeconds);
      await cache.fetchFromRedis(keys);
      return keys.map((key) => cache.get(key) !== undefined);
    };
    expect(await read(300, 0)).toEqual([true, true]);
    expect(await read(200, 100)).toEqual([true, false]);
    expect(await read(20, 20)).toEqual([false, false]);
  });

  it("is not read if it lives longer than it was written for, or for ever: its age is unknown", async () => {
    const entry = JSON.stringify({ ttlMs: 300_000, account: found });
    const key = "tributary:v3:account:{network}:creator";
    for (const expiry of [["PX", 7_500_000], []]) {
      await server.command("SET", key, entry, ...expiry);
      expect(await fetched("creator")).toEqual([undefined]);
    }
    await store(new Map([["@creator", found]]));
    expect(await fetched("creator")).toEqual([found]);
  });

  it("keeps accounts of different networks apart", async () => {
    await store(new Map([["@creator", found]]));
    const other = createAccountCache({
      socialApiUrl: new URL("http://other"),
      socialCacheSeconds: 300,
      redis,
    });
    await other.fetchFromRedis(["@creator"]);
    expect(other.get("@creator")).toBeUndefined();
  });

  it.each([
    ["of another handle", { account: { ...found, handle: "Other" } }, undefined],
    ["with an invalid id", { account: { ...found, id: "007" } }, undefined],
    ["without its TTL", { ttlMs: undefined, account: found }, undefined],
    ["without a profile", { account: { ...found, profile: undefined } }, undefined],
    [
      "with unusable fields in its profile",
      {
        account: {
          ...found,
          profile: { ...profile, followers: "many", pictureUrl: "javascript:alert(1)" },
        },
      },
      { ...found, profile: { ...profile, followers: null, pictureUrl: null } },
    ],
  ])("reads a stored account as far as it is valid: %s", async (_name, stored, read) => {
    const value = JSON.stringify({ ttlMs: 60_000, ...stored });
    await server.command("SET", "tributary:v3:account:{network}:creator", value, "PX", 60_000);
    expect(await fetched("creator")).toEqual([read]);
  });

  it("ignores a stored text that is not JSON", async () => {
    await server.command("SET", "tributary:v3:account:{network}:creator", "{", "PX", 60_000);
    expect(await fetched("creator")).toEqual([undefined]);
  });
});
