import { PublicKey } from "@solana/web3.js";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_FEES_PROGRAM_ID,
  LAUNCHPAD_PROGRAM_ID,
} from "../../src/chain/launchpad/program-ids.ts";
import { startWorld, type World } from "../support/world.ts";

const LOADER = "BPFLoaderUpgradeab1e11111111111111111111111";
const PROGRAMS = {
  LAUNCHPAD: LAUNCHPAD_PROGRAM_ID,
  AMM: LAUNCHPAD_AMM_PROGRAM_ID,
  FEES: LAUNCHPAD_FEES_PROGRAM_ID,
} as const;

let world: World;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  world = await startWorld();
});
afterEach(async () => {
  await world.close();
  vi.useRealTimers();
});

const PERIOD_MS = 600_000;

/** The slots in the metrics, by program. The next read comes meanwhile. */
async function shownSlots(): Promise<Record<string, number>> {
  vi.advanceTimersByTime(PERIOD_MS);
  const { body } = await world.request("/metrics");
  const samples = body.matchAll(/^tributary_launchpad_deploy_slot\{program="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...samples].map(([, program, slot]) => [program!, Number(slot)]));
}

/** Makes a program seem deployed in this slot. */
function deploy(program: keyof typeof PROGRAMS, slot: number): void {
  const { chain } = world.sandbox;
  const id = new PublicKey(PROGRAMS[program]);
  const [programData] = PublicKey.findProgramAddressSync([id.toBuffer()], new PublicKey(LOADER));
  const account = chain.account(programData.toBase58())!;
  const data = Buffer.from(account.data);
  data.writeBigUInt64LE(BigInt(slot), 4);
  chain.setAccount(programData.toBase58(), { ...account, data });
}

const redeployments = () =>
  world.logLines
    .map(
      (line) => JSON.parse(line) as { level: number; msg: string; program?: string; slot?: number },
    )
    .filter(({ msg }) => msg.includes("deployed a program again"));

it("shows in which slot each program of the platform was deployed, and logs once when that changes", async () => {
  const slot = world.sandbox.chain.slot("finalized");
  deploy("LAUNCHPAD", slot - 30);
  deploy("AMM", slot - 20);
  deploy("FEES", slot - 10);
  expect(await shownSlots()).toEqual({});
  await world.gateway.start();
  await expect.poll(shownSlots).toEqual({ LAUNCHPAD: slot - 30, AMM: slot - 20, FEES: slot - 10 });
  expect(redeployments()).toEqual([]);

  deploy("AMM", slot - 5);
  await expect.poll(shownSlots).toEqual({ LAUNCHPAD: slot - 30, AMM: slot - 5, FEES: slot - 10 });
  deploy("FEES", slot - 1);
  await expect.poll(shownSlots).toEqual({ LAUNCHPAD: slot - 30, AMM: slot - 5, FEES: slot - 1 });
  expect(redeployments()).toMatchObject([
    { level: 40, program: "AMM", slot: slot - 5, before: slot - 20 },
    { level: 40, program: "FEES", slot: slot - 1, before: slot - 10 },
  ]);
});

it("keeps the newest slot when a node is behind, and trusts no slot that is yet to come", async () => {
  const slot = world.sandbox.chain.slot("finalized");
  deploy("LAUNCHPAD", slot - 2);
  await world.gateway.start();
  await expect.poll(async () => (await shownSlots()).LAUNCHPAD).toBe(slot - 2);
  deploy("LAUNCHPAD", slot - 9);
  deploy("AMM", slot - 1);
  await expect.poll(async () => (await shownSlots()).AMM).toBe(slot - 1);
  deploy("LAUNCHPAD", slot + 1_000);
  deploy("AMM", slot);
  await expect.poll(async () => (await shownSlots()).AMM).toBe(slot);
  expect(await shownSlots()).toMatchObject({ LAUNCHPAD: slot - 2 });
  expect(redeployments()).toMatchObject([{ program: "AMM" }, { program: "AMM" }]);
});
