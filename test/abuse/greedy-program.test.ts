import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, onTestFinished, vi } from "vitest";
import { createSandboxCollector } from "../support/collector-on-sandbox.ts";
import type { Env } from "../support/configure.ts";
import { curveOf } from "../support/launchpad-instructions.ts";
import { chain, sandbox, withNewSandbox } from "../support/fixtures.ts";
import { isMethod, onNext } from "../support/sandbox.ts";

const GREEDY = fileURLToPath(new URL("../support/programs/greedy-launchpad.so", import.meta.url));
const SOL = 1_000_000_000n;
const BALANCE = 10n * SOL;
const TAKES_OWNERSHIP = 2n ** 64n - 1n;
/** More than the fee of any transaction here. */
const A_FEE = 5_200n;

const it = withNewSandbox({ launchpadFile: GREEDY });
let mint: string;
beforeEach(() => {
  mint = sandbox.account("launcher").coins[0]!.mint;
});

const create = (env: Env = {}) => createSandboxCollector(sandbox, { withCoins: true, env });
/** Makes each sweep of the coin also take this much from its payer. */
function setGreed(lamports: bigint): void {
  const curve = chain.account(curveOf(mint))!;
  const data = Buffer.from(curve.data);
  data.writeBigUInt64LE(lamports, 133);
  chain.setAccount(curveOf(mint), { ...curve, data });
}
const whenSent = (act: () => void) => {
  onNext(sandbox.rpc, isMethod("sendTransaction"), act);
};
/**
 * Makes sweeps use as many compute units in the simulation as later, when they take more than this
 * lamport.
 */
const TAKES_LITTLE = 1n;
const lost = () => BALANCE - chain.balance(sandbox.feePayer);

describe("a program that takes more than it did in the simulation", () => {
  it.each([
    ["a little more than the budget of an hour", 50_700_000n],
    ["ownership of the fee payer's account", TAKES_OWNERSHIP],
  ])(
    "fails its transaction when it takes %s, and the fee payer loses only the fee",
    async (_, greed) => {
      setGreed(TAKES_LITTLE);
      whenSent(() => {
        setGreed(greed);
      });
      expect(await create().collect("launcher")).toMatchObject({ kind: "failed-on-chain" });
      const [{ err, message }] = sandbox.landedCollects() as [any];
      expect(err.InstructionError[0]).toBe(message.instructions.length - 1);
      expect(lost()).toBeLessThan(A_FEE + 100n);
      const { owner } = chain.account(sandbox.feePayer)!;
      expect(owner).toBe("11111111111111111111111111111111");
    },
  );

  it("takes at most the budget of an hour, and then no more is signed", async () => {
    const collector = create({ FEE_BUDGET_LAMPORTS_PER_HOUR: "10000000" });
    setGreed(TAKES_LITTLE);
    whenSent(() => {
      setGreed(9_996_000n);
    });
    expect(await collector.collect("launcher")).toMatchObject({ kind: "collected" });
    expect(lost()).toBeLessThan(10_002_000n);
    expect(collector.logLines.join("")).toContain(
      "the fee payer paid 9995999 lamports more rent than expected",
    );
    expect(await collector.collect("creator", "another caller")).toMatchObject({
      kind: "budget-spent",
      scope: "SERVICE",
    });
  });
});

/** A caller's share at once covers the rent of 2,000,000 and two fees. */
const RENT_AND_TWO_FEES = {
  FEE_BUDGET_LAMPORTS_PER_HOUR: "16100000",
  MAX_RENT_LAMPORTS: 2_005_000n,
  MAX_PRIORITY_FEE_LAMPORTS: "0",
};

describe("a program that takes rent in the simulation", () => {
  it.each([
    ["more than 2% of what the sweep moves", 100_000_001n, {}],
    ["more than MAX_RENT_LAMPORTS", 3_000_001n, {}],
    ["more than a lower MAX_RENT_LAMPORTS", 50_001n, { MAX_RENT_LAMPORTS: 50_000n }],
    ["ownership of the fee payer's account", TAKES_OWNERSHIP, {}],
  ])("gets nothing when it takes %s: its coins are left out", async (_, greed, env) => {
    setGreed(greed);
    const { coins } = sandbox.account("launcher");
    expect(await create(env).collect("launcher")).toMatchObject({ kind: "collected" });
    expect(lost()).toBeLessThan(A_FEE);
    expect(chain.account(curveOf(mint))!.data.subarray(125, 133)).not.toEqual(new Uint8Array(8));
    expect(coins[0]!.mint).toBe(mint);
  });

  it("is paid what the rules allow, which counts in the budget", async () => {
    setGreed(2_000_000n);
    // The budget's time stands still.
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const collector = create(RENT_AND_TWO_FEES);
    expect(await collector.collect("launcher")).toMatchObject({
      kind: "collected",
      collected: 9_750_000_000n,
    });
    expect(lost()).toBeGreaterThanOrEqual(2_005_000n);
    expect(await collector.collect("creator")).toMatchObject({ kind: "collected" });
    expect(await collector.collect("artist001")).toMatchObject({
      kind: "budget-spent",
      scope: "CALLER",
    });
  });
});

describe("rent that a transaction did not pay after all", () => {
  it("returns to the budget", async () => {
    const collector = create(RENT_AND_TWO_FEES);
    setGreed(2_000_000n);
    whenSent(() => {
      setGreed(TAKES_LITTLE);
    });
    expect(await collector.collect("launcher")).toMatchObject({ kind: "collected" });
    expect(lost()).toBeLessThan(A_FEE);
    for (const handle of ["creator", "artist001", "artist002"])
      expect(await collector.collect(handle)).toMatchObject({ kind: "collected" });
  });
});
