/**
 * The service against a node: the one at NODE_URL, which must have an empty chain (`npm run
 * test:node -- <url>`), or the sandbox's.
 */
import { readFileSync } from "node:fs";
import { Keypair, PublicKey, SystemProgram, Transaction } from "@solana/web3.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_PROGRAM_ID,
} from "../../src/chain/launchpad/program-ids.ts";
import { formatSol, toLamports } from "../../src/chain/primitives/lamports.ts";
import { readConfig } from "../../src/config.ts";
import { createGateway } from "../../src/gateway.ts";
import { listen, CONNECTION_LIMITS } from "../../src/http/server.ts";
import { createLogger } from "../../src/observability/log.ts";
import { startSandbox, type Sandbox, type SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { createClient } from "../support/client.ts";
import { openEventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { newMint } from "../support/new-mint.ts";
import {
  callNode,
  connectToSurfpool,
  startProxy,
  startSandboxNode,
  type NodeProxy,
  type TestNode,
} from "./node.ts";

const NODE_URL = process.env.NODE_URL;
const SOL = 10n ** 9n;
const programFile = (name: string) =>
  readFileSync(new URL(`../../src/sandbox/programs/${name}`, import.meta.url));

let node: TestNode;
let proxy: NodeProxy;
/**
 * Holds the social network, and a chain on which accounts are made before they are copied to the
 * node.
 */
let template: Sandbox;
let client: ReturnType<typeof createClient>;
let closeGateway: () => Promise<void>;
const faucet = Keypair.generate();

async function copyToNode(...addresses: string[]): Promise<void> {
  for (const address of addresses) {
    const account = template.chain.account(address);
    if (account) await node.setAccount(address, account);
  }
}

/**
 * An account of the social network, with what it has on the chain. Each test has one of its own.
 */
async function account(handle: string): Promise<SandboxAccount> {
  const found = template.accounts.find((each) => each.handle === handle)!;
  const { address, creatorVault, ammVault, ammVaultAuthority } = found;
  await copyToNode(address, creatorVault, ammVault, ammVaultAuthority);
  return found;
}

/** Sends lamports in an ordinary transaction; resolves when it is final. */
async function send(to: string, lamports: bigint): Promise<string> {
  const call = (method: string, ...params: unknown[]) => callNode(node.url, method, params);
  const { value } = await call("getLatestBlockhash", { commitment: "finalized" });
  const transaction = new Transaction({ feePayer: faucet.publicKey, ...value }).add(
    SystemProgram.transfer({ fromPubkey: faucet.publicKey, toPubkey: new PublicKey(to), lamports }),
  );
  transaction.sign(faucet);
  const wire = transaction.serialize().toString("base64");
  const signature: string = await call("sendTransaction", wire, {
    encoding: "base64",
    skipPreflight: true,
  });
  await eventually(async () => {
    const statuses = await call("getSignatureStatuses", [signature]);
    expect(statuses.value[0]).toMatchObject({ err: null });
    expect(statuses.value[0].confirmationStatus).toBe("finalized");
  });
  return signature;
}

const history = async ({ id }: SandboxAccount) => {
  const query =
    "query ($id: String!) { walletById(socialId: $id) { history { nodes { kind amount signature } } } }";
  const { body } = await client.graphql(query, { id });
  expect(body.errors).toBeUndefined();
  return body.data.walletById.history.nodes;
};

beforeAll(async () => {
  template = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
  node = NODE_URL ? connectToSurfpool(NODE_URL) : await startSandboxNode();
  const { env } = template;
  await node.deploy(LAUNCHPAD_PROGRAM_ID, programFile("launchpad.so"));
  await node.deploy(LAUNCHPAD_AMM_PROGRAM_ID, programFile("amm.so"));
  await node.deploy(env.ESCROW_PROGRAM_ID, programFile("launchpad.so"));
  const feePayer = Keypair.fromSecretKey(
    Uint8Array.from(JSON.parse(env.FEE_PAYER_KEYPAIR) as number[]),
  );
  const owner = SystemProgram.programId.toBase58();
  for (const key of [feePayer, faucet])
    await node.setAccount(key.publicKey.toBase58(), {
      lamports: 100n * SOL,
      owner,
      data: new Uint8Array(),
    });

  proxy = await startProxy(node.url);
  const config = readConfig({
    ...env,
    SOLANA_RPC_URL: proxy.url,
    PORT: "0",
    RATE_LIMIT_MAX: "100000",
    COLLECT_TIMEOUT_MS: "120000",
    LOG_LEVEL: "silent",
    TRUST_PROXY: "127.0.0.1",
  });
  const log = createLogger("silent", { write: () => undefined });
  const gateway = createGateway(config, { log });
  await gateway.ready;
  const server = await listen(gateway.api, config, CONNECTION_LIMITS);
  client = createClient(server.url);
  closeGateway = async () => {
    gateway.drain();
    await server.close();
    await gateway.settled();
    gateway.close();
  };
});

afterAll(async () => {
  await closeGateway();
  await proxy.stop();
  await template.close();
  await node.close();
});

it("looks up balances, alone and many at once", async () => {
  const creator = await account("creator");
  const { chain } = template;
  const rent: number = await callNode(node.url, "getMinimumBalanceForRentExemption", [0]);
  const vault = chain.balance(creator.creatorVault) - BigInt(rent);
  expect((await client.lookup("creator")).body).toMatchObject({
    handle: "creator",
    address: creator.address,
    derivation: {
      program: template.env.ESCROW_PROGRAM_ID,
      seeds: [template.env.ESCROW_SEED, creator.id],
    },
    balance: {
      vault: formatSol(toLamports(vault)),
      pda: formatSol(toLamports(chain.balance(creator.address))),
    },
  });
  const handles = template.accounts.slice(0, 60).filter(({ suspended }) => !suspended);
  const answer = await client.graphql(
    "query ($handles: [String!]!) { wallets(handles: $handles) { address balance { total } } }",
    { handles: handles.map(({ handle }) => handle) },
  );
  expect(answer.body.errors).toBeUndefined();
  expect(answer.body.data.wallets.map(({ address }: any) => address)).toEqual(
    handles.map(({ address }) => address),
  );
});

it("collects a vault, shows it in the history, and then has nothing to collect", async () => {
  const artist = await account("artist001");
  const received = await send(artist.address, SOL);
  await send(artist.creatorVault, SOL);
  const before = (await client.lookup("artist001")).body.balance;
  const { status, body } = await client.collect(artist.id);
  expect([status, body.success]).toEqual([200, true]);
  expect(body.collected).toBe(before.vault);
  const after = (await client.lookup("artist001")).body.balance;
  expect([after.vault, after.total]).toEqual(["0.0000", before.total]);
  expect((await client.collect(artist.id)).body).toMatchObject({
    success: false,
    error: "NOTHING_TO_COLLECT",
  });
  await eventually(async () => {
    expect((await history(artist)).slice(0, 2)).toEqual([
      { kind: "COLLECTED", amount: body.collected, signature: body.txSignature },
      { kind: "RECEIVED", amount: "1.0000", signature: received },
    ]);
  });
});

it("collects from a curve and a pool what reaches the minimum, and then names the coins", async () => {
  const artist = await account("artist002");
  const [onCurve, inPool] = [newMint(), newMint()];
  template.coins.launch({ mint: onCurve, creator: artist.address, fees: SOL });
  template.coins.launch({ mint: inPool, creator: artist.address });
  template.coins.migrate(inPool, { fees: 2n * SOL });
  for (const mint of [onCurve, inPool]) {
    const { curve, curveTokens, pool, poolTokens } = template.coins.addressesOf(mint);
    await copyToNode(mint, curve, curveTokens, pool, poolTokens);
  }
  const query = `/wallet/lookup?handle=artist002&mint=${onCurve}&mint=${inPool}`;
  const { body: before } = await client.request(query);
  const collect = (minimum: string) =>
    client.post("/collect", { socialId: artist.id, mints: [onCurve, inPool], minimum });
  expect((await collect("1000")).body).toMatchObject({
    success: false,
    error: "NOTHING_TO_COLLECT",
    message: expect.stringMatching(/^Only [0-9.]+ SOL can be collected/),
  });
  const { body } = await collect("3");
  expect(body).toMatchObject({ success: true, collected: before.balance.vault });
  expect(Number(body.collected)).toBeGreaterThanOrEqual(3);
  expect((await client.request(query)).body.balance.vault).toBe("0.0000");
  const coins =
    "query ($id: String!) { walletById(socialId: $id) { coinsSeen history(first: 1) { nodes { mints } } } }";
  await eventually(async () => {
    const { data } = (await client.graphql(coins, { id: artist.id })).body;
    const { coinsSeen, history } = data.walletById;
    for (const mints of [coinsSeen, history.nodes[0].mints])
      expect([...mints].sort()).toEqual([onCurve, inPool].sort());
  });
});

it("collects several accounts together", async () => {
  const artists = await Promise.all(["artist003", "artist004", "artist005"].map(account));
  for (const { creatorVault } of artists) await send(creatorVault, SOL);
  const { body } = await client.graphql(
    "mutation ($collects: [CollectInput!]!) { collectMany(collects: $collects) { success collected txSignature } }",
    { collects: artists.map(({ id }) => ({ socialId: id })) },
  );
  expect(body.errors).toBeUndefined();
  expect(body.data.collectMany.map(({ success }: any) => success)).toEqual([true, true, true]);
  for (const { collected } of body.data.collectMany)
    expect(Number(collected)).toBeGreaterThanOrEqual(1);
});

it("tells a subscriber about fees that arrive", async () => {
  const artist = await account("artist006");
  const stream = await openEventStream(client.url, {
    query:
      "subscription ($id: String!) { walletById(socialId: $id) { balance { vaultLamports } } }",
    variables: { id: artist.id },
  });
  const amounts = () =>
    stream.events().map(({ data }: any) => BigInt(data.walletById.balance.vaultLamports));
  await eventually(() => {
    expect(amounts()).toHaveLength(1);
  });
  await send(artist.creatorVault, SOL);
  await eventually(() => {
    expect(amounts().at(-1)).toBe(amounts()[0]! + SOL);
  });
  stream.close();
});

it("answers LOOKUP_FAILED while the node is down, and is right again when it is back", async () => {
  const artist = await account("artist007");
  const { body: before } = await client.lookup("artist007");
  await proxy.stop();
  expect((await client.lookup("artist007")).body.error).toBe("LOOKUP_FAILED");
  expect((await client.collect(artist.id)).body.error).toBe("COLLECT_FAILED");
  await proxy.start();
  await eventually(async () => {
    expect((await client.lookup("artist007")).body).toEqual(before);
  });
});

it("answers with the new state after slots were skipped", async () => {
  const artist = await account("artist009");
  const { body: before } = await client.lookup("artist009");
  await node.skipSlots(300);
  await send(artist.address, SOL);
  await eventually(async () => {
    const { body } = await client.lookup("artist009");
    expect(Number(body.balance.pda)).toBeCloseTo(Number(before.balance.pda) + 1, 4);
  });
});

it("reports a transaction that expires, and collects the same fees afterwards", async () => {
  const artist = await account("artist008");
  const earlier = (await history(artist)).map(({ signature }: any) => signature);
  await send(artist.creatorVault, SOL);
  proxy.swallow("sendTransaction");
  const lost = client.collect(artist.id);
  await eventually(() => {
    expect(proxy.swallowed()).toBeGreaterThan(0);
  });
  await node.expireBlockhashes();
  const { status, body } = await lost;
  expect([status, body.error]).toEqual([500, "COLLECT_FAILED"]);
  expect(body.message).toMatch(/did not land and never can/);
  proxy.swallow();
  const { body: collected } = await client.collect(artist.id);
  expect(collected.success).toBe(true);
  await eventually(async () => {
    expect((await history(artist)).map(({ signature }: any) => signature)).toEqual([
      collected.txSignature,
      ...earlier,
    ]);
  });
});
