import { afterEach, describe, expect, it } from "vitest";
import type { CollectError } from "../../src/chain/errors/collect-error.ts";
import { createSandboxCollector } from "../support/collector-on-sandbox.ts";
import { claimExpiry, inventLandings } from "../support/doubles/invented-landing.ts";
import { POSITIONS, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import { startWithLyingEndpoints } from "../support/lying-endpoints.ts";
import { addMs, monotonicNow } from "../../src/time/monotonic.ts";
import { rpcResult } from "../support/rpc-answers.ts";
import { isMethod, NEVER_MS } from "../support/sandbox.ts";
import type { World } from "../support/world.ts";

const SOL = 1_000_000_000n;
const FAILED = { InstructionError: [1, { Custom: 1 }] } as const;
const ALL_FEES = { success: true, collected: "3.1000", newBalance: "8.3000" };

let world: World;
let endpoints: LyingEndpoint[];
let liar: LyingEndpoint;
let honest: LyingEndpoint[];
afterEach(async () => {
  await world.close();
  await Promise.all(endpoints.map((endpoint) => endpoint.close()));
});

async function start(index: number, waits = {}) {
  ({ world, endpoints } = await startWithLyingEndpoints(3, {}, { waits }));
  liar = endpoints[index]!;
  honest = endpoints.filter((endpoint) => endpoint !== liar);
}
const collect = () => world.collect(world.account("creator").id);
const addFees = () => {
  const { chain } = world.sandbox;
  const { creatorVault } = world.account("creator");
  chain.setBalance(creatorVault, chain.balance(creatorVault) + SOL);
};
/** The honest endpoints drop transactions until the returned function is called. */
const drop = () => {
  const lifts = honest.map(({ faults }) =>
    faults.add({ when: isMethod("sendTransaction"), then: rpcResult("dropped") }),
  );
  return () => {
    for (const lift of lifts) lift();
  };
};
const callsOf = ({ calls }: LyingEndpoint, method: string) => calls.filter(isMethod(method)).length;
/** The different transactions that were sent. */
const sent = () =>
  new Set(liar.calls.filter(isMethod("sendTransaction")).map(({ params }) => params[0])).size;

describe.each(POSITIONS)("when the $position of three endpoints lies", ({ index }) => {
  it("a failed transaction that it invents is no answer, and nothing backs off", async () => {
    await start(index);
    liar.become(inventLandings(world.sandbox.chain, { err: FAILED }));
    const lift = drop();
    const answer = collect();
    await expect.poll(() => callsOf(honest[0]!, "sendTransaction")).toBeGreaterThan(3);
    lift();
    expect((await answer).body).toMatchObject(ALL_FEES);
    addFees();
    expect((await collect()).body).toMatchObject({ success: true, collected: "1.0000" });
    expect(world.sandbox.landedCollects()).toHaveLength(2);
  });

  it("a success that it invents is no answer, and no lookup waits for its slot", async () => {
    await start(index);
    const invention = { gain: 777n * SOL, slotsAhead: 140 };
    liar.become(inventLandings(world.sandbox.chain, invention));
    const lift = drop();
    const answer = collect();
    await expect.poll(() => callsOf(honest[0]!, "sendTransaction")).toBeGreaterThan(3);
    lift();
    expect((await answer).body).toMatchObject(ALL_FEES);
    for (const endpoint of honest) endpoint.calls.length = 0;
    expect((await world.lookup("creator")).body.balance.total).toBe("8.3000");
    const newest = world.sandbox.chain.slot("processed");
    for (const { calls } of honest)
      for (const { params } of calls.filter(isMethod("getMultipleAccounts")))
        expect((params[1] as any).minContextSlot ?? 0).toBeLessThanOrEqual(newest);
  });

  it("a success that it invents is no answer while the others fail for a moment", async () => {
    await start(index, { aloneMs: NEVER_MS });
    liar.become(inventLandings(world.sandbox.chain, { gain: 777n * SOL }));
    const answer = collect();
    for (const { faults } of honest)
      faults.add({
        when: isMethod("getTransaction", "getSignatureStatuses"),
        times: 2,
        then: "reset",
      });
    expect((await answer).body).toMatchObject(ALL_FEES);
  });

  it("no second transaction is signed because it claims that the first one has expired", async () => {
    await start(index, { agreeMs: 0 });
    liar.become(claimExpiry(250));
    const lift = drop();
    const answer = collect();
    await expect.poll(() => callsOf(honest[0]!, "sendTransaction")).toBeGreaterThan(6);
    lift();
    expect((await answer).body).toMatchObject(ALL_FEES);
    expect(sent()).toBe(1);
  });

  it("a wrong balance of the fee payer is not charged to the budget", async () => {
    await start(index);
    liar.lie({
      getTransaction(tellTruth) {
        const truth = tellTruth();
        const balances = truth?.meta.preBalances as bigint[] | undefined;
        if (balances) balances[0]! += 900n * SOL;
        return truth;
      },
    });
    const { id, coins } = world.account("launcher");
    const mints = coins.map(({ mint }) => mint);
    expect((await world.collect(id, {}, mints)).body).toMatchObject({ success: true });
    expect((await collect()).body).toMatchObject(ALL_FEES);
  });
});

it("if two endpoints go on disagreeing on a landed transaction, its amounts are not certain, and nothing backs off", async () => {
  await start(1);
  liar.become(inventLandings(world.sandbox.chain, { err: FAILED }));
  const { sandbox } = world;
  const collector = createSandboxCollector(sandbox, {
    rpcs: [sandbox.rpc, liar],
    env: { COLLECT_TIMEOUT_MS: "5000" },
  });
  const account = sandbox.account("creator");
  // The caller waits longer than the amounts are read.
  const askedAt = addMs(monotonicNow(), 600_000);
  const outcome = await collector.collector
    .collect({ account, coins: [] }, "caller", askedAt)
    .catch((error: unknown) => (error as CollectError).failure);
  const [landed] = sandbox.landedCollects();
  expect(outcome).toEqual({ kind: "landed-unreadable", signature: landed!.signature });
  liar.stopLying();
  addFees();
  expect(await collector.collect("creator")).toMatchObject({ kind: "collected", collected: SOL });
});
