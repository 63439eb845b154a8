import { afterEach, describe, expect, it, vi } from "vitest";
import { CLOCK_SYSVAR } from "../../src/chain/slots/clock.ts";
import type { Methods } from "../../src/sandbox/rpc/json-rpc.ts";
import { inventLandings } from "../support/doubles/invented-landing.ts";
import {
  earlierClock,
  POSITIONS,
  startLyingEndpoint,
  type LyingEndpoint,
} from "../support/doubles/lying-endpoint.ts";
import { startWorld, type World } from "../support/world.ts";

const ALL_FEES = { success: true, collected: "3.1000", newBalance: "8.3000" };
const GAIN = 777_000_000_000n;
const SLOT_MS = 200;
/** More than a node's slots may differ from another's. */
const SLOTS_TOO_LOW = 2_000;

let world: World;
let endpoints: LyingEndpoint[];
let liar: LyingEndpoint;
let honest: LyingEndpoint[];
let goOn: (() => void) | undefined;
afterEach(async () => {
  vi.restoreAllMocks();
  goOn?.();
  goOn = undefined;
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

describe.each([6, 60])("while the chain stands still for %i s", (seconds) => {
  it.each(POSITIONS)(
    "the $position of three endpoints, which goes on, decides nothing alone",
    async ({ index }) => {
      await start(index, { COLLECT_TIMEOUT_MS: "3000", RPC_TIMEOUT_MS: "1000" });
      const { chain } = world.sandbox;
      await world.gateway.start();
      goOn = chain.standStill();
      const since = Date.now();
      const slotsAhead = () => Math.floor((Date.now() - since) / SLOT_MS);
      liar.become((truth) => ({
        ...inventLandings(chain, { gain: GAIN })(truth),
        ...goingOn(truth, slotsAhead),
      }));
      let passedMs = 0;
      const [now, date] = [performance.now.bind(performance), Date.now.bind(Date)];
      vi.spyOn(performance, "now").mockImplementation(() => now() + passedMs);
      vi.spyOn(Date, "now").mockImplementation(() => date() + passedMs);
      while (passedMs < seconds * 1_000) {
        passedMs += 1_000;
        await world.lookup("artist001");
      }

      expect((await collect()).body).toMatchObject({ success: false, error: "COLLECT_FAILED" });
      expect(world.sandbox.landedCollects()).toEqual([]);
      for (const other of honest)
        expect(linesAbout("stands still").join()).not.toContain(hostOf(other));
      goOn();
      await expect
        .poll(async () => (await world.lookup("creator")).body.balance?.pda)
        .toBe("8.3000");
      expect(world.sandbox.landedCollects()).toHaveLength(1);
    },
  );
});

/** What a node says that is this many slots ahead. */
function goingOn(truth: Methods, slotsAhead: () => number): Methods {
  const later = (method: string) => (params: unknown) => {
    const { context, value } = structuredClone(truth[method]!(params)) as any;
    return { context: { ...context, slot: Number(context.slot) + slotsAhead() }, value };
  };
  return {
    getSlot: (params) => Number(truth.getSlot!(params)) + slotsAhead(),
    simulateTransaction: later("simulateTransaction"),
    getLatestBlockhash: later("getLatestBlockhash"),
    getMultipleAccounts(params) {
      const { context, value } = later("getMultipleAccounts")(params);
      const [keys] = params as [string[]];
      const seconds = Math.floor((slotsAhead() * SLOT_MS) / 1_000);
      const clock = keys.indexOf(CLOCK_SYSVAR);
      if (clock >= 0) value[clock] = earlierClock(value[clock], -seconds);
      return { context, value };
    },
  };
}

describe.each(POSITIONS)(
  "when the slots of the $position of three endpoints are too low",
  (each) => {
    const { index } = each;
    const QUERY = `query History($id: String!) {
    walletById(socialId: $id) { history(first: 20) { nodes { signature } } }
  }`;

    it("a history still has what the others list, and none of them backs off", async () => {
      await start(index);
      const { chain } = world.sandbox;
      const { id, address } = world.account("artist001");
      const signature = chain.transfer(address, 1_000_000_000n);
      chain.advanceSlots(32);
      const lower = (tellTruth: () => any) => {
        const { context, value } = tellTruth();
        return { context: { ...context, slot: Number(context.slot) - SLOTS_TOO_LOW }, value };
      };
      liar.lie({
        getMultipleAccounts: lower,
        getLatestBlockhash: lower,
        simulateTransaction: lower,
        getSlot: (tellTruth) => Number(tellTruth()) - SLOTS_TOO_LOW,
        getSignaturesForAddress: () => [],
      });
      await world.gateway.start();
      expect((await world.lookup("artist002")).status).toBe(200);
      const { body } = await world.graphql(QUERY, { id });
      expect(body.data.walletById.history).toEqual({ nodes: [{ signature }] });
      expect(linesAbout("a chain endpoint fails")).toEqual([]);
    });
  },
);
