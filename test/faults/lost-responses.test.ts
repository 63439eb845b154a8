import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { startRedis, type RedisServer } from "../support/redis-server.ts";
import { startReplicas, type Replicas } from "../support/replicas.ts";
import { startWorld, type World } from "../support/world.ts";

const FIRST = { collected: "3.1000", newBalance: "8.3000" };

/** A time that is at most a minute ago. */
const RECENT = expect.toSatisfy((at: string) => {
  const age = Date.now() - Date.parse(at);
  return new Date(at).toISOString() === at && age > -1_000 && age < 60_000;
});

describe("a caller who lost the response of a collect and asks again", () => {
  let world: World;
  beforeEach(async () => {
    world = await startWorld();
  });
  afterEach(() => world.close());

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
      lastCollect: { ...FIRST, txSignature: body.txSignature, at: RECENT },
    });
  });

  it("gets the exact amounts over GraphQL", async () => {
    const { id } = world.account("creator");
    const { body } = await world.collect(id);
    const text =
      "mutation C($id: String!) { collect(socialId: $id) { success txSignature lastCollect { collected collectedLamports newBalance newBalanceLamports txSignature at } } }";
    const { collect } = (await world.graphql(text, { id })).body.data;
    expect(collect).toEqual({
      success: false,
      txSignature: null,
      lastCollect: {
        ...FIRST,
        collectedLamports: "3100000000",
        newBalanceLamports: "8300000000",
        txSignature: body.txSignature,
        at: RECENT,
      },
    });
  });

  it("gets the balance right after that collect, even if its owner has withdrawn since", async () => {
    const { id, address } = world.account("creator");
    await world.collect(id);
    world.sandbox.chain.setBalance(address, 1_000_000_000n);
    expect((await world.collect(id)).body.lastCollect).toMatchObject(FIRST);
  });

  it("gets the newer of two collects", async () => {
    const { id, creatorVault } = world.account("creator");
    await world.collect(id);
    const { chain } = world.sandbox;
    chain.setBalance(creatorVault, chain.balance(creatorVault) + 500_000_000n);
    const { body } = await world.collect(id);
    expect((await world.collect(id)).body.lastCollect).toMatchObject({
      collected: "0.5000",
      newBalance: "8.8000",
      txSignature: body.txSignature,
    });
  });

  it("hears of no collect of another account, and of none that others did on the chain", async () => {
    await world.collect(world.account("creator").id);
    const { id, creatorVault } = world.account("artist001");
    world.sandbox.chain.setBalance(creatorVault, world.sandbox.chain.rentExemptMinimum(0));
    const { body } = await world.collect(id);
    expect(body.error).toBe("NOTHING_TO_COLLECT");
    expect(body).not.toHaveProperty("lastCollect");
  });
});

describeWithRedis("a caller who asks again at another replica", () => {
  let server: RedisServer;
  let replicas: Replicas;
  beforeAll(async () => {
    server = await startRedis();
    replicas = await startReplicas(server.url);
  });
  afterAll(async () => {
    await replicas.close();
    await server.stop();
  });
  const keyOf = (handle: string) =>
    `tributary:v3:known:{${replicas.sandbox.feePayer}:${replicas.sandbox.account(handle).address}}`;

  it("hears what the last collect moved", async () => {
    const { id } = replicas.sandbox.account("creator");
    const { body } = await replicas.at(0).collect(id);
    expect((await replicas.at(1).collect(id)).body).toMatchObject({
      error: "NOTHING_TO_COLLECT",
      lastCollect: { ...FIRST, txSignature: body.txSignature, at: RECENT },
    });
    expect(await server.command("PTTL", keyOf("creator"))).toBeLessThanOrEqual(3_600_000);
    expect(await server.command("PTTL", keyOf("creator"))).toBeGreaterThan(0);
  });

  it("hears nothing of it once an hour is over, or if the entry is unreadable", async () => {
    const { id } = replicas.sandbox.account("artist001");
    await replicas.at(0).collect(id);
    await expect
      .poll(async () => (await replicas.at(1).collect(id)).body)
      .toMatchObject({ lastCollect: { txSignature: expect.any(String) } });
    await server.command("HSET", keyOf("artist001"), "collect", "{");
    expect((await replicas.at(1).collect(id)).body).not.toHaveProperty("lastCollect");
    await server.command("DEL", keyOf("artist001"));
    expect((await replicas.at(1).collect(id)).body).not.toHaveProperty("lastCollect");
  });
});
