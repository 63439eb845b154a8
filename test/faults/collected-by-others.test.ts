import { describe, expect } from "vitest";
import type { JsonRpcCall } from "../../src/sandbox/rpc/json-rpc.ts";
import { isMethod, onNext } from "../support/sandbox.ts";
import { chain, withNewWorld, world } from "../support/fixtures.ts";

const SOL = 1_000_000_000n;

const it = withNewWorld();

const account = () => world.account("creator");
const setVault = (fees: bigint) => {
  chain.setBalance(account().creatorVault, chain.rentExemptMinimum(0) + fees);
};
/** The lamports of all lines that say "collected". */
const logged = () =>
  world.logLines
    .map((line) => JSON.parse(line) as { msg: string; lamports?: string })
    .filter(({ msg }) => msg === "collected")
    .map(({ lamports }) => lamports);

describe("a transaction that moves nothing, because someone else collected first,", () => {
  it.each([
    [SOL, "COLLECT_FAILED", "Fees may still wait: try again."],
    [0n, "NOTHING_TO_COLLECT", "Try again after more trading."],
  ])("is sent twice; with %d lamports waiting then, the answer is %s", async (fees, error, end) => {
    const { rpc } = world.sandbox;
    for (const [i, waiting] of [SOL, fees].entries()) {
      onNext(rpc, isMethod("sendTransaction"), () => {
        setVault(0n);
      });
      // A look that comes too early is repeated.
      const isAfterLanding = (call: JsonRpcCall) =>
        isMethod("getTransaction")(call) && world.sandbox.landedCollects().length === i + 1;
      onNext(rpc, isAfterLanding, () => {
        setVault(waiting);
      });
    }
    const { body } = await world.collect(account().id);
    expect(body).toMatchObject({ error, message: expect.stringContaining(end) as string });
    expect(world.sandbox.landedCollects()).toHaveLength(2);
    expect(logged()).toEqual([]);
    const { body: metrics } = await world.request("/metrics");
    const result = error === "COLLECT_FAILED" ? error : "nothing";
    expect(metrics).toContain(`tributary_collects_total{result="${result}"} 1\n`);
    // Nothing backs off.
    setVault(SOL);
    expect((await world.collect(account().id)).body).toMatchObject({ collected: "1.0000" });
  });

  it("is not logged as collected for one of several accounts in it", async () => {
    const accounts = ["creator", "artist001"].map(world.account);
    const emptied = accounts[0]!;
    onNext(world.sandbox.rpc, isMethod("sendTransaction"), () => {
      setVault(0n);
    });
    const query = `mutation ($collects: [CollectInput!]!) {
      collectMany(collects: $collects) { success txSignature }
    }`;
    const { body } = await world.graphql(query, {
      collects: accounts.map(({ id }) => ({ socialId: id })),
    });
    expect(body.data.collectMany.map(({ success }: any) => success)).toEqual([false, true]);
    const [landed] = world.sandbox.landedCollects();
    expect(landed!.message.accountKeys).toContain(emptied.creatorVault);
    expect(logged()).not.toContain("0");
    expect(logged()).toHaveLength(1);
  });
});
