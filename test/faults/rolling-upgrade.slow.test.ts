import { describe, expect } from "vitest";
import { eventually } from "../support/eventually.ts";
import { replicas, withReplicas } from "../support/fixtures.ts";

const VAULT = 3_100_000_000n;

const it = withReplicas();

describe("during an upgrade, replicas", () => {
  it("neither use nor change keys of other versions", async () => {
    const { id, creatorVault } = replicas.sandbox.account("creator");
    const { redis } = replicas;
    const { chain } = replicas.sandbox;
    async function lookUpAndCollect(): Promise<void> {
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + VAULT);
      expect(await replicas.at(0).lookup("creator")).toMatchObject({ status: 200 });
      expect(await replicas.at(1).collect(id)).toMatchObject({
        status: 200,
        body: { collected: "3.1000" },
      });
    }
    await lookUpAndCollect();

    let keys: string[] = [];
    await eventually(async () => {
      keys = await redis.command("KEYS", "tributary:v*");
      const kinds = keys.map((key) => key.split(":")[2]);
      expect(kinds).toEqual(
        expect.arrayContaining(["account", "bucket", "claim", "known", "limit"]),
      );
    });
    const copies = ["", "v1:", "v4:"].flatMap((version) =>
      keys.map((key) => [key, key.replace(/v\d:/, version)] as const),
    );
    for (const [key, copy] of copies) {
      await redis.command("COPY", key, copy);
      await redis.command("PERSIST", copy);
      // Its holder has not finished.
      if (copy.includes("claim:")) await redis.command("HDEL", copy, "done");
    }
    const state = () =>
      Promise.all(
        copies.flatMap(([, key]) => [redis.command("DUMP", key), redis.command("PTTL", key)]),
      );
    const before = await state();
    for (const key of keys) await redis.command("DEL", key);

    await lookUpAndCollect();
    expect(replicas.sandbox.landedCollectsOf("creator")).toHaveLength(2);
    expect(await state()).toEqual(before);
  });
});
