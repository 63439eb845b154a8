import { afterEach, describe, expect, it } from "vitest";
import type { Methods } from "../../src/sandbox/rpc/json-rpc.ts";
import { inventLandings } from "../support/doubles/invented-landing.ts";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWorld, type World } from "../support/world.ts";

const ALL_FEES = { success: true, collected: "3.1000", newBalance: "8.3000" };
const GAIN = 777_000_000_000n;
/** More than a node's slots may differ from another's. */
const SLOTS_TOO_LOW = 2_000;

const POSITIONS = [
  { position: "preferred", index: 0 },
  { position: "second", index: 1 },
  { position: "last", index: 2 },
];

let world: World;
let endpoints: LyingEndpoint[];
let liar: LyingEndpoint;
let honest: LyingEndpoint[];
afterEach(async () => {
  for (const { faults } of endpoints) faults.clear();
  await world.close();
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
});

async function start(index: number, env: Record<string, string> = {}): Promise<void> {
  world = await startWorld(async (sandbox) => {
    endpoints = await Promise.all([1, 2, 3].map(() => startLyingEndpoint(sandbox)));
    // Slots below the first one do not exist.
    sandbox.chain.advanceSlots(2 * SLOTS_TOO_LOW);
    return { SOLANA_RPC_URL: endpoints.map(({ url }) => url).join(), ...env };
  });
  liar = endpoints[index]!;
  honest = endpoints.filter((endpoint) => endpoint !== liar);
}
const collect = (handle = "creator") => world.collect(world.account(handle).id);
const hostOf = ({ url }: LyingEndpoint) => new URL(url).host;
const linesAbout = (text: string) => world.logLines.filter((line) => line.includes(text));

/** The methods of a node that is on another cluster, and returns every transaction as landed. */
const onAnotherCluster = (truth: Methods): Methods => ({
  ...inventLandings(world.sandbox.chain, { gain: GAIN })(truth),
  getGenesisHash: () => "4uhcVJyU9pJkvQyS88uRDiswHScSpkwe8Z8zEfGUVQTd",
});

describe.each(POSITIONS)("when the $position of three endpoints is on another cluster", (each) => {
  const { index } = each;

  it("from the start of the process, what it invents is no answer", async () => {
    await start(index);
    liar.become(onAnotherCluster);
    expect((await collect()).body).toMatchObject(ALL_FEES);
    expect(world.sandbox.landedCollects()).toHaveLength(1);
    expect((await collect()).body.error).toBe("NOTHING_TO_COLLECT");
  });

  it("the start names it, and the others are right", async () => {
    await start(index);
    liar.become(onAnotherCluster);
    await world.gateway.start();
    const named = linesAbout("SOLANA_RPC_URL: ").filter((line) => line.includes("the others on"));
    expect(named).toEqual([expect.stringContaining(`${hostOf(liar)} is on testnet`)]);
    const { body } = await world.request("/readyz");
    expect(JSON.stringify(body)).toContain(`${hostOf(liar)}: a chain endpoint is on another`);
    for (const other of honest) expect(JSON.stringify(body)).not.toContain(hostOf(other));
  });

  it("while one of the others is down from the start, what it invents is no answer", async () => {
    await start(index, { COLLECT_TIMEOUT_MS: "3000", RPC_TIMEOUT_MS: "1000" });
    liar.become(onAnotherCluster);
    honest[1]!.faults.add({ then: "reset" });
    await world.gateway.start();
    expect((await collect()).body).toMatchObject({ success: false, error: "COLLECT_FAILED" });
  });

  it("once it is back, while one of the others is down, what it invents is no answer", async () => {
    await start(index);
    const lift = liar.faults.add({ then: "reset" });
    expect((await collect("artist001")).body).toMatchObject({ success: true });
    liar.become(onAnotherCluster);
    lift();
    honest[1]!.faults.add({ then: "reset" });
    expect((await collect()).body).toMatchObject(ALL_FEES);
    expect(world.sandbox.landedCollects()).toHaveLength(2);
  });
});
