import { afterEach, describe, expect, vi } from "vitest";
import type { Redis } from "../../src/store/redis.ts";
import { createSandboxCollector } from "../support/collector-on-sandbox.ts";
import { describeWithRedis, eachWithRedis, redis } from "../support/describe-with-redis.ts";
import { sandbox, withNewSandbox } from "../support/fixtures.ts";
import { hold, isMethod } from "../support/sandbox.ts";

const ALL_FEES = {
  kind: "collected",
  collected: 3_100_000_000n,
  newBalance: 8_300_000_000n,
  remaining: [],
};
const NOTHING_SENT_YET = { kind: "still-running", signature: undefined };

const it = withNewSandbox();
afterEach(() => {
  vi.restoreAllMocks();
});
const create = (redis?: Redis) => createSandboxCollector(sandbox, redis && { redis });
const wasCalled = (method: string) =>
  expect.poll(() => sandbox.rpc.calls.some(isMethod(method))).toBe(true);

describe("a collect", () => {
  it("that has not signed a transaction by its own deadline sends none", async () => {
    const collector = create();
    const release = hold(sandbox.rpc, isMethod("getLatestBlockhash"));
    expect(await collector.collectBriefly("creator")).toEqual(NOTHING_SENT_YET);
    await wasCalled("getLatestBlockhash");
    const later = performance.now() + 600_001;
    vi.spyOn(performance, "now").mockReturnValue(later);
    release();
    await collector.settled();
    expect(sandbox.rpc.calls.filter(isMethod("sendTransaction"))).toEqual([]);
  });
});

describeWithRedis("a caller who times out while the transaction is being stored", () => {
  eachWithRedis();

  it("learns only that nothing is sent yet, because it may never be", async () => {
    const { promise: stored, resolve: store } = Promise.withResolvers<undefined>();
    let isStoring = false;
    const slowRedis: Redis = {
      ...redis,
      async run(script, call) {
        const { args } = script.toArguments(call);
        if (args.some((value) => String(value).includes("lastValidBlockHeight"))) {
          isStoring = true;
          await stored;
        }
        return redis.run(script, call);
      },
    };
    const collector = create(slowRedis);
    const patient = collector.collect("creator");
    await expect.poll(() => isStoring).toBe(true);
    expect(await collector.collectBriefly("creator")).toEqual(NOTHING_SENT_YET);
    expect(collector.openSignatures()).toEqual([]);
    store(undefined);
    expect(await patient).toMatchObject(ALL_FEES);
  });
});
