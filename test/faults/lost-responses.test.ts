import { describe, expect } from "vitest";
import {
  chain,
  replicas,
  sandbox,
  withNewWorld,
  withReplicas,
  world,
} from "../support/fixtures.ts";
import { isMethod } from "../support/sandbox.ts";

const FIRST = { collected: "3.1000", newBalance: "8.3000" };

/** A time that is at most a minute ago. */
const RECENT = expect.toSatisfy((at: string) => {
  const age = Date.now() - Date.parse(at);
  return new Date(at).toISOString() === at && age > -1_000 && age < 60_000;
});

const it = withNewWorld();
const atReplicas = withReplicas();

describe("a caller who lost the response of a collect and asks again", () => {
  it("hears that nothing is left, and what the last collect moved", async () => {
    const { id } = world.account("creator");
    const { body } = await world.collect(id);
    expect(body).not.toHaveProperty("lastCollect");
    const again = await world.collect(id);
    expect(again.status).toBe(400);
    expect(again.body).toEqual({
      success: false,
      error: "NOTHING_TO_COLLECT",
      message: expect.any(String),
      collected: "0.0000",
      moved: "no",
      lastCollect: { ...FIRST, txSignature: body.txSignature, at: RECENT },
      left: [],
      lastCollects: [{ ...FIRST, txSignature: body.txSignature, at: RECENT }],
    });
  });

  it("hears of the lost collect when new fees have arrived, on success and on failure", async () => {
    const { id, creatorVault } = world.account("creator");
    const { rpc } = world.sandbox;
    const { body: lost } = await world.collect(id);
    expect(lost.lastCollects).toEqual([]);
    const first = { ...FIRST, txSignature: lost.txSignature, at: RECENT };
    chain.setBalance(creatorVault, chain.balance(creatorVault) + 500_000_000n);
    const lift = rpc.faults.add({ when: isMethod("simulateTransaction"), then: "reset" });
    const { status, body: failed } = await world.collect(id);
    expect([status, failed.moved, failed.lastCollects]).toEqual([500, "no", [first]]);
    const exact = { collectedLamports: "3100000000", newBalanceLamports: "8300000000" };
    const text = "mutation C($id: String!) { collect(socialId: $id) { success } }";
    const { errors } = (await world.graphql(text, { id })).body;
    expect(errors[0].extensions.lastCollects).toEqual([{ ...first, ...exact }]);
    lift();
    const { body } = await world.collect(id);
    expect(body).toMatchObject({ success: true, collected: "0.5000", lastCollects: [first] });
    const second = { collected: "0.5000", newBalance: "8.8000", txSignature: body.txSignature };
    expect((await world.collect(id)).body.lastCollects).toEqual([{ ...second, at: RECENT }, first]);
  });

  it("hears of the newest 20 other collects, each once, the newest first", async () => {
    const { id, creatorVault } = world.account("creator");
    const signatures: string[] = [];
    let answer: any;
    for (let i = 0; i < 22; i++) {
      chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 500_000_000n);
      answer = (await world.collect(id)).body;
      signatures.unshift(answer.txSignature);
    }
    const listed = (body: any) => body.lastCollects.map(({ txSignature }: any) => txSignature);
    expect(listed(answer)).toEqual(signatures.slice(1, 21));
    expect(listed((await world.collect(id)).body)).toEqual(signatures.slice(0, 20));
  });
});

describe("a caller who asks again at another replica", () => {
  const keyOf = (handle: string) =>
    `tributary:v3:known:{${sandbox.feePayer}:${sandbox.account(handle).address}}`;

  atReplicas("hears what the last collect moved", async () => {
    const { id } = sandbox.account("creator");
    const { body } = await replicas.at(0).collect(id);
    expect((await replicas.at(1).collect(id)).body).toMatchObject({
      error: "NOTHING_TO_COLLECT",
      lastCollect: { ...FIRST, txSignature: body.txSignature, at: RECENT },
    });
    expect(await replicas.redis.command("PTTL", keyOf("creator"))).toBeLessThanOrEqual(3_600_000);
    expect(await replicas.redis.command("PTTL", keyOf("creator"))).toBeGreaterThan(0);
  });

  atReplicas(
    "hears of collects of the version before this one, which hears of this one's",
    async () => {
      const { id, creatorVault } = sandbox.account("artist002");
      const entry = (signature: string, secondsAgo: number) =>
        JSON.stringify({
          ...{ collected: "5", newBalance: "6", signature, at: Date.now() - 1_000 * secondsAgo },
        });
      const listed = async () =>
        (await replicas.at(1).collect(id)).body.lastCollects.map((each: any) => each.txSignature);
      /** As the other version does. */
      const write = (text: string) =>
        replicas.redis.command(
          "HSET",
          keyOf("artist002"),
          "collect",
          text,
          "at",
          JSON.parse(text).at,
        );
      await write(entry("before", 60));
      const collect = async () => {
        chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 500_000_000n);
        return (await replicas.at(0).collect(id)).body;
      };
      const first = await collect();
      expect(first.lastCollects).toMatchObject([{ txSignature: "before" }]);
      await expect.poll(listed).toEqual([first.txSignature, "before"]);
      const read = await replicas.redis.command("HGET", keyOf("artist002"), "collect");
      expect(JSON.parse(read)).toMatchObject({ signature: first.txSignature });
      await write(entry("after", -1));
      expect(await listed()).toEqual(["after", first.txSignature, "before"]);
      const second = await collect();
      expect(new Set(await listed())).toEqual(
        new Set(["after", second.txSignature, first.txSignature, "before"]),
      );
      await replicas.redis.command("HSET", keyOf("artist002"), "collects", "[{}, 7, null]");
      expect(await collect()).toMatchObject({ success: true });
    },
  );
});
