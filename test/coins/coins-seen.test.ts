import { beforeEach, expect } from "vitest";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import {
  collectCreatorFee,
  sweepCurve,
  sweepPool,
  toInstruction,
  transferCreatorFeesToPump,
} from "../support/launchpad-instructions.ts";
import { newMint } from "../support/new-mint.ts";
import { chain, it, world } from "../support/fixtures.ts";
import type { World } from "../support/world.ts";
import { sendPaid } from "../support/faucet.ts";

const SOL = 10n ** 9n;

/** Each test has an account of its own. */
let account: SandboxAccount;
let tests = 0;
beforeEach(() => {
  account = world.account(`artist${String(++tests).padStart(3, "0")}`);
  world.forgetCalls();
});

const QUERY = `query ($id: String!) {
  walletById(socialId: $id) { coinsSeen history { nodes { kind signature mints } } }
}`;
async function read() {
  chain.advanceSlots(1);
  const { body } = await world.graphql(QUERY, { id: account.id });
  expect(body.errors).toBeUndefined();
  const { coinsSeen, history } = body.data.walletById;
  return { coinsSeen, transfers: history.nodes };
}

type NewCoin = Parameters<World["sandbox"]["coins"]["launch"]>[0];
function launch(coin: Partial<NewCoin> = {}): string {
  const mint = newMint();
  world.sandbox.coins.launch({ mint, creator: account.address, fees: SOL, ...coin });
  return mint;
}
function launchInPool(): string {
  const mint = launch({ fees: 0n });
  world.sandbox.coins.migrate(mint, SOL);
  return mint;
}
const launchShared = () =>
  launch({
    shareholders: [
      { address: account.address, bps: 6_000 },
      { address: world.account("creator").address, bps: 4_000 },
    ],
  });
const collect = async (...mints: string[]): Promise<string> =>
  (await world.collect(account.id, {}, mints)).body.txSignature;
/** Lands instructions of the launch platform, as anyone can. Returns the signature. */
const send = (instructionsFor: (payer: string) => Parameters<typeof toInstruction>[0][]): string =>
  sendPaid(chain, (payer) =>
    instructionsFor(payer.toBase58()).map((each) =>
      toInstruction(each, (each as ReturnType<typeof sweepCurve>).accounts),
    ),
  );

it("a transfer has the coins that its collect swept from curves and pools, or distributed", async () => {
  const [onCurve, inPool, shared] = [launch(), launchInPool(), launchShared()];
  const first = await collect(onCurve, inPool, shared);
  const second = await collect(onCurve, inPool, shared);
  const { transfers, coinsSeen } = await read();
  const own = expect.arrayContaining([onCurve, inPool]);
  expect(transfers).toEqual([
    { kind: "COLLECTED", signature: second, mints: [shared] },
    { kind: "COLLECTED", signature: first, mints: own },
  ]);
  expect(transfers[1].mints).toHaveLength(2);
  expect([...coinsSeen].sort()).toEqual([onCurve, inPool, shared].sort());
});

it("the coins are the last ones first, each once", async () => {
  const [first, second] = [launch(), launch()];
  await collect(first);
  world.sandbox.coins.addFees(first, SOL);
  await collect(second);
  await collect(first);
  const { coinsSeen, transfers } = await read();
  expect(coinsSeen).toEqual([first, second]);
  expect(transfers.map(({ mints }: any) => mints)).toEqual([[first], [second], [first]]);
});

it("a coin that anyone sweeps to the vault is seen, although no transfer shows it", async () => {
  const [onCurve, inPool] = [launch(), launchInPool()];
  send((payer) => [sweepCurve(payer, onCurve, account.address)]);
  send((payer) => [
    sweepPool(payer, inPool, account.address),
    transferCreatorFeesToPump(account.address),
    collectCreatorFee(account.address),
  ]);
  const { coinsSeen, transfers } = await read();
  expect(coinsSeen).toEqual([inPool, onCurve]);
  expect(transfers.map(({ mints }: any) => mints)).toEqual([[inPool]]);
});

it("coins cannot be watched, because each event would read them again", async () => {
  const { status, body } = await world.post(
    "/graphql",
    { query: `subscription { walletById(socialId: "${account.id}") { coinsSeen } }` },
    { accept: "text/event-stream" },
  );
  expect(status).toBe(400);
  expect(JSON.stringify(body)).toContain("A subscription has no `history` and no `coinsSeen`.");
});
