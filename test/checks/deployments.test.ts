import { PublicKey } from "@solana/web3.js";
import { afterEach, expect, it, vi } from "vitest";
import { recordPlatformCheck } from "../../src/checks/platform-checks.ts";
import { LAUNCHPAD_PROGRAMS } from "../../src/chain/launchpad/program-ids.ts";
import { describeWithRedis, eachWithRedis, redis, server } from "../support/describe-with-redis.ts";
import { startWorld, type World } from "../support/world.ts";

const LOADER = "BPFLoaderUpgradeab1e11111111111111111111111";
const PERIOD_MS = 600_000;

let world: World;
afterEach(async () => {
  await world.close();
  vi.useRealTimers();
});

/** Makes a program seem deployed in this slot. */
function deploy(program: keyof typeof LAUNCHPAD_PROGRAMS, slot: number): void {
  const { chain } = world.sandbox;
  const id = new PublicKey(LAUNCHPAD_PROGRAMS[program]);
  const [programData] = PublicKey.findProgramAddressSync([id.toBuffer()], new PublicKey(LOADER));
  const account = chain.account(programData.toBase58())!;
  const data = Buffer.from(account.data);
  data.writeBigUInt64LE(BigInt(slot), 4);
  chain.setAccount(programData.toBase58(), { ...account, data });
}
const linesWith = (text: string) =>
  world.logLines
    .map((line) => JSON.parse(line) as { level: number; msg: string })
    .filter(({ msg }) => msg.includes(text));

it("the slot in which each program of the platform was deployed shows, and a change is logged once", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  world = await startWorld();
  /** The slots in the metrics, by program. The next read comes meanwhile. */
  const shown = async () => {
    vi.advanceTimersByTime(PERIOD_MS);
    const { body } = await world.request("/metrics");
    const samples = body.matchAll(/^tributary_launchpad_deploy_slot\{program="(\w+)"\} (\d+)$/gm);
    return Object.fromEntries([...samples].map(([, program, slot]) => [program!, Number(slot)]));
  };
  const slot = world.sandbox.chain.slot("finalized");
  deploy("LAUNCHPAD", slot - 30);
  deploy("AMM", slot - 20);
  deploy("FEES", slot - 10);
  expect(await shown()).toEqual({});
  await world.gateway.start();
  await expect.poll(shown).toEqual({ LAUNCHPAD: slot - 30, AMM: slot - 20, FEES: slot - 10 });
  const redeployments = () => linesWith("deployed a program again");
  expect(redeployments()).toEqual([]);

  // A node that is behind, and a slot that is yet to come.
  deploy("LAUNCHPAD", slot - 40);
  deploy("FEES", slot + 1_000);
  deploy("AMM", slot - 5);
  await expect.poll(shown).toEqual({ LAUNCHPAD: slot - 30, AMM: slot - 5, FEES: slot - 10 });
  expect(redeployments()).toMatchObject([
    { level: 40, program: "AMM", slot: slot - 5, before: slot - 20 },
  ]);
});

describeWithRedis("with Redis", () => {
  eachWithRedis();

  it("a metric says which deployment was checked", async () => {
    world = await startWorld({ REDIS_URL: server.url });
    expect(await recordPlatformCheck(redis, "AMM", 7)).toBe(true);
    await world.gateway.start();
    await expect
      .poll(async () => (await world.request("/metrics")).body)
      .toContain('tributary_launchpad_checked_slot{program="AMM"} 7\n');
  });
});
