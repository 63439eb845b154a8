import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { coinFees } from "../support/coin-balances.ts";
import { newMint } from "../support/new-mint.ts";
import { rpcError } from "../support/rpc-answers.ts";
import { hold, isMethod } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";

const SOL = 1_000_000_000n;
/** More than the 150 blocks in which a blockhash is valid and the 32 slots to finality together. */
const SLOTS_PAST_BLOCKHASH = 200;

let world: World;
let chain: World["sandbox"]["chain"];
async function start(...args: Parameters<typeof startWorld>) {
  world = await startWorld(...args);
  ({ chain } = world.sandbox);
}
afterEach(async () => {
  world.sandbox.rpc.faults.clear();
  await world.close();
});

const account = () => world.account("creator");
function launch(): string {
  const mint = newMint();
  world.sandbox.coins.launch({ mint, creator: account().address, fees: SOL });
  return mint;
}
/**
 * A stranger collects the account without coins. The owner, who names a coin, joins before it is
 * signed, so that it would be a success for the owner too. Returns the answers, and a function that lets the stranger's collect go on.
 */
async function joinPlainCollect(mint: string) {
  const { rpc } = world.sandbox;
  const release = hold(rpc, isMethod("simulateTransaction"));
  const stranger = world.collect(account().id);
  await expect.poll(() => rpc.calls.some(isMethod("simulateTransaction"))).toBe(true);
  const owner = world.collect(account().id, {}, [mint]);
  for (let round = 0; round < 3; round++) await world.request("/livez");
  return { stranger, owner, release };
}

describe("a collect that names a coin and joins one without coins", () => {
  it("collects the coin in a transaction of its own", async () => {
    await start();
    const mint = launch();
    const { stranger, owner, release } = await joinPlainCollect(mint);
    release();
    const first = (await stranger).body;
    expect(first).toMatchObject({ success: true, collected: "3.1000" });
    const { body } = await owner;
    expect(body).toMatchObject({ success: true, collected: "1.0000", remaining: "0.0000" });
    expect(body.txSignature).not.toBe(first.txSignature);
  });

  it("is no success with nothing remaining if its own transaction expires", async () => {
    await start();
    const { rpc } = world.sandbox;
    const mint = launch();
    const { stranger, owner, release } = await joinPlainCollect(mint);
    const isOther = (call: (typeof rpc.calls)[number]) =>
      isMethod("sendTransaction")(call) &&
      call.params[0] !== rpc.calls.find(isMethod("sendTransaction"))!.params[0];
    rpc.faults.add({ when: isOther, then: rpcError({ code: -32005 }) });
    release();
    expect((await stranger).body).toMatchObject({ success: true });
    await expect.poll(() => rpc.calls.some(isOther)).toBe(true);
    chain.advanceSlots(SLOTS_PAST_BLOCKHASH);
    const { body } = await owner;
    expect(coinFees(chain, mint).curve).toBe(SOL);
    expect(body).toMatchObject({ success: false, error: "COLLECT_FAILED" });
  });

  it("is no success with nothing remaining if the budget refuses its own transaction", async () => {
    // The budget of one transaction.
    await start({ FEE_BUDGET_LAMPORTS_PER_HOUR: "12000", MAX_PRIORITY_FEE_LAMPORTS: "0" });
    const mint = launch();
    const { stranger, owner, release } = await joinPlainCollect(mint);
    release();
    expect((await stranger).body).toMatchObject({ success: true });
    const { body, headers } = await owner;
    expect(coinFees(chain, mint).curve).toBe(SOL);
    expect(body).toMatchObject({ success: false, error: "COLLECT_FAILED" });
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  });
});

describe("what remains of a collect that names coins", () => {
  beforeEach(() => start({ RATE_LIMIT_MAX: "1000" }));

  it("is what its own read saw in all other units, and the next collects move it", async () => {
    const own = launch();
    const shared = newMint();
    const shareholders = [account().address, world.account("artist001").address].map((address) => ({
      address,
      bps: 5_000,
    }));
    const { coins } = world.sandbox;
    coins.launch({ mint: shared, creator: shared, kind: "shared", shareholders, fees: 2n * SOL });
    const mints = [own, shared];
    const collect = async () => (await world.collect(account().id, {}, mints)).body;
    expect(await collect()).toMatchObject({ collected: "4.1000", remaining: "1.0000" });
    expect(await collect()).toMatchObject({ collected: "1.0000", remaining: "0.0000" });
    expect(await collect()).toMatchObject({ error: "NOTHING_TO_COLLECT", remaining: "0.0000" });
  });
});
