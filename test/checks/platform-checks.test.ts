import { PublicKey } from "@solana/web3.js";
import { afterEach, beforeEach, expect, it } from "vitest";
import { recordPlatformCheck } from "../../src/checks/platform-checks.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import type { Redis } from "../../src/store/redis.ts";
import { describeWithRedis, eachWithRedis } from "../support/describe-with-redis.ts";
import type { RedisServer } from "../support/redis-server.ts";
import { startWorld, type World } from "../support/world.ts";

const LOADER = "BPFLoaderUpgradeab1e11111111111111111111111";

let world: World;
afterEach(() => world.close());

const startLog = () => world.logLines.filter((line) => line.includes("the launch platform's"));
const lineOfAmm = () => startLog().find((line) => line.includes(LAUNCHPAD_AMM_PROGRAM_ID));

it("says at the start, without a warning, that no check is known without Redis", async () => {
  world = await startWorld();
  await world.gateway.start();
  expect(startLog()).toHaveLength(3);
  for (const line of startLog()) {
    expect(line).toContain("no check by npm run doctor -- --platform is known");
    expect(JSON.parse(line)).toMatchObject({ level: 30 });
  }
});

describeWithRedis("with Redis", () => {
  let redis: Redis;
  let server: RedisServer;
  eachWithRedis((eachServer, eachRedis) => {
    [server, redis] = [eachServer, eachRedis];
  });
  let slot: number;
  beforeEach(async () => {
    world = await startWorld({ REDIS_URL: server.url });
    slot = world.sandbox.chain.slot("finalized") - 10;
    const { chain } = world.sandbox;
    const id = new PublicKey(LAUNCHPAD_AMM_PROGRAM_ID);
    const [address] = PublicKey.findProgramAddressSync([id.toBuffer()], new PublicKey(LOADER));
    const account = chain.account(address.toBase58())!;
    const data = Buffer.from(account.data);
    data.writeBigUInt64LE(BigInt(slot), 4);
    chain.setAccount(address.toBase58(), { ...account, data });
  });

  it("says at the start, and in a metric, that the deployment was checked", async () => {
    expect(await recordPlatformCheck(redis, new Map([["AMM", slot]]))).toBe(true);
    await world.gateway.start();
    expect(lineOfAmm()).toContain(`is deployed, last in slot ${slot}, and checked since`);
    const metrics = async () => (await world.request("/metrics")).body;
    await expect
      .poll(metrics)
      .toContain(`tributary_launchpad_checked_slot{program="AMM"} ${slot}\n`);
    expect(startLog().filter((line) => line.includes("no check by"))).toHaveLength(2);
  });

  it("warns at the start that a program was deployed after the last check", async () => {
    await recordPlatformCheck(redis, new Map([["AMM", slot - 1]]));
    await world.gateway.start();
    expect(lineOfAmm()).toContain(
      `last in slot ${slot}, after the last check: run npm run doctor -- --platform`,
    );
    expect(JSON.parse(lineOfAmm()!)).toMatchObject({ level: 40 });
  });
});
