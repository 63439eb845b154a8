import { getBase58Decoder } from "@solana/codecs-strings";
import { PublicKey, SystemProgram, type TransactionInstruction } from "@solana/web3.js";
import { afterEach, expect, it } from "vitest";
import { effectOf } from "../../src/chain/history/effect.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { startLyingEndpoint, type LyingEndpoint } from "../support/doubles/lying-endpoint.ts";
import {
  AMM,
  collectCreatorFee,
  distributeCreatorFees,
  poolOf,
  PUMP,
  sweepCurve,
  sweepPool,
  toInstruction,
} from "../support/launchpad-instructions.ts";
import { newMint } from "../support/new-mint.ts";
import { isMethod, type TestSandbox } from "../support/sandbox.ts";
import { startWorld, type World } from "../support/world.ts";
import { sendPaid } from "../support/faucet.ts";
import { from } from "../support/client.ts";

const SOL = 10n ** 9n;
const base58 = (data: Uint8Array) => getBase58Decoder().decode(data);

let world: World;
let node: LyingEndpoint;
let account: SandboxAccount;
async function start(overrides: Record<string, unknown> = {}) {
  world = await startWorld(async (sandbox: TestSandbox) => {
    node = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: node.url, ...overrides };
  });
  account = world.account("artist001");
}
afterEach(async () => {
  await world.close();
  await node.close();
});

const QUERY = `query ($id: String!) { walletById(socialId: $id) { address coinsSeen } }`;
async function ask(headers: Record<string, string> = {}) {
  world.sandbox.chain.advanceSlots(1);
  return world.graphql(QUERY, { id: account.id }, headers);
}
const coinsSeen = async () => (await ask()).body.data.walletById.coinsSeen;
const callsTo = (name: string) => node.calls.filter(isMethod(name)).length;

function launch(creator: string, fees = SOL): string {
  const mint = newMint();
  world.sandbox.coins.launch({ mint, creator, fees });
  return mint;
}
type Listed = ReturnType<typeof sweepCurve>;
const toInstructions = (listed: readonly Listed[]) =>
  listed.map((each) => toInstruction(each, each.accounts));
/** Lands instructions, as anyone can, in a transaction that also pays these addresses a lamport. */
function sendWith(listedFor: (payer: string) => Listed[], ...addresses: string[]): string {
  return sendPaid(world.sandbox.chain, (fromPubkey) => [
    ...toInstructions(listedFor(fromPubkey.toBase58())),
    ...addresses.map((address): TransactionInstruction =>
      SystemProgram.transfer({ fromPubkey, toPubkey: new PublicKey(address), lamports: 1 }),
    ),
  ]);
}

it("a stranger's sweep of another creator's coin does not count, although its transaction pays the vault and the address", async () => {
  await start();
  const stranger = world.account("artist002").address;
  const [onCurve, inPool] = [launch(stranger), launch(stranger, 0n)];
  world.sandbox.coins.migrate(inPool, SOL);
  const { address, creatorVault } = account;
  sendWith(
    (payer) => [sweepCurve(payer, onCurve, stranger), collectCreatorFee(stranger)],
    address,
    creatorVault,
  );
  sendWith((payer) => [sweepPool(payer, inPool, stranger)], address, creatorVault);
  expect(await coinsSeen()).toEqual([]);
  expect(callsTo("getTransaction")).toBe(2);
});

it("only the launch platform's instructions count: neither another program's, nor another instruction", () => {
  const creator = "FBPDdfpbMweBco4nhqyCKX8Agvq7oNGiDkng6EdHfyvp";
  const creatorAccount = {
    address: creator,
    creatorVault: sweepCurve(PUMP, newMint(), creator).accounts[9]![0],
    ammVaultAuthority: sweepPool(PUMP, newMint(), creator).accounts[6]![0],
  };
  const mint = newMint();
  const seenIn = (listed: Listed, data?: string, program = listed.program) => {
    const [instruction] = toInstructions([listed]);
    const accounts = listed.accounts.map(([address]) => address);
    const text = data ?? base58(instruction!.data);
    const instructions = [{ program, accounts, data: text }];
    const transaction = { err: null, blockTime: undefined, balances: new Map(), instructions };
    return effectOf(transaction, "", creatorAccount).coins;
  };
  const none = { mints: [], pools: [] };
  const curve = sweepCurve(PUMP, mint, creator);
  const pool = sweepPool(PUMP, mint, creator);
  const distribution = distributeCreatorFees(mint, [creator]);
  expect(seenIn(curve)).toEqual({ mints: [mint], pools: [] });
  expect(seenIn(distribution)).toEqual({ mints: [mint], pools: [] });
  expect(seenIn(pool)).toEqual({ mints: [], pools: [poolOf(mint)] });
  for (const listed of [curve, distribution, pool]) {
    expect(seenIn(listed, "")).toEqual(none);
    expect(seenIn(listed, undefined, "other")).toEqual(none);
  }
  expect(seenIn(curve, undefined, AMM)).toEqual(none);
  // A node may send an instruction without its accounts.
  expect(seenIn({ ...curve, accounts: [] })).toEqual(none);
});

it("an endpoint cannot give a pool another coin", async () => {
  await start();
  const mint = launch(account.address, 0n);
  world.sandbox.coins.migrate(mint, SOL);
  await world.collect(account.id, {}, [mint]);
  const other = new PublicKey(newMint()).toBuffer();
  node.lie({
    getMultipleAccounts(tellTruth, [keys]) {
      const { context, value } = tellTruth();
      const at = keys.indexOf(poolOf(mint));
      if (at < 0) return { context, value };
      const data = Buffer.from(value[at].data[0], "base64");
      other.copy(data, 43);
      value[at].data[0] = data.toString("base64");
      return { context, value };
    },
  });
  expect(await coinsSeen()).toEqual([]);
});

it("a stranger who launches 124 coins for the account makes the list no longer than a hundred, and calls no more than two pages have", async () => {
  await start();
  for (let i = 0; i < 31; i++) {
    const mints = Array.from({ length: 4 }, () => launch(account.address));
    sendWith((payer) => mints.map((mint) => sweepCurve(payer, mint, account.address)));
  }
  const own = launch(account.address);
  await world.collect(account.id, {}, [own]);
  node.calls.length = 0;
  const seen = await coinsSeen();
  expect(seen).toHaveLength(100);
  expect(seen[0]).toBe(own);
  expect([callsTo("getSignaturesForAddress"), callsTo("getTransaction")]).toEqual([2, 30]);
});

it("the coins of a wallet cost two requests more, and a hundred wallets' are refused", async () => {
  await start({ RATE_LIMIT_MAX: "20", RATE_LIMIT_WINDOW_SECONDS: 3600 });
  const caller = from("192.0.2.1");
  const { headers } = await ask(caller);
  expect(headers.get("ratelimit")).toMatch(/;r=17;/);
  const many = await world.graphql(
    `{ walletsById(socialIds: [${Array.from({ length: 10 }, (_, i) => `"${i + 1}"`).join(" ")}]) { coinsSeen } }`,
    {},
    caller,
  );
  expect([many.status, many.body.errors[0].extensions.code]).toEqual([400, "BAD_REQUEST"]);
});

it("the calls for a wallet's coins count against the share of the block", async () => {
  // 15 calls for a block.
  await start({ RPC_CALLS_PER_SECOND: "4" });
  // Eight tries of a list, and of a balance: they do not wait, but count.
  node.faults.add({ then: "reset" });
  await ask(from("192.0.2.2"));
  await world.lookup("artist001", from("192.0.2.3"));
  node.faults.clear();
  const listsBefore = callsTo("getSignaturesForAddress");
  const refused = await ask(from("192.0.2.4"));
  expect([refused.status, refused.body]).toMatchObject([
    200,
    {
      data: { walletById: { address: account.address, coinsSeen: null } },
      errors: [
        {
          path: ["walletById", "coinsSeen"],
          extensions: { code: "SERVICE_BUSY", scope: "CALLER" },
        },
      ],
    },
  ]);
  expect(callsTo("getSignaturesForAddress")).toBe(listsBefore);
  expect((await world.request("/metrics")).body).toMatch(
    /tributary_budget_refusals_total\{budget="chain_calls",scope="CALLER"\} [1-9]/,
  );
});
