import { createStandstill } from "../support/chain-levers.ts";
import { createHash, createPrivateKey, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { toTransaction } from "../../src/chain/units/message.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { compileWithConfig, LOADED_DATA_LIMIT } from "../support/messages.ts";

const standstill = createStandstill();
let sandbox: Sandbox;
let connection: Connection;
beforeAll(async () => {
  sandbox = await startSandbox({
    ...{ slotMs: 0, rpcPort: 0, socialPort: 0 },
    now: standstill.now,
  });
  connection = new Connection(sandbox.rpc.url, "finalized");
});
afterAll(() => sandbox.close());

const rpc = async (method: string, params: unknown[]): Promise<any> => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(sandbox.rpc.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  return response.json();
};

const createUser = () => {
  const user = Keypair.generate();
  sandbox.chain.setBalance(user.publicKey.toBase58(), BigInt(LAMPORTS_PER_SOL));
  return user;
};

/** A signed transfer to a new address. */
function signTransfer(user: Keypair, blockhash: string, lamports: number): Buffer {
  const transaction = new Transaction({
    feePayer: user.publicKey,
    blockhash,
    lastValidBlockHeight: 0,
  }).add(
    SystemProgram.transfer({ fromPubkey: user.publicKey, toPubkey: PublicKey.unique(), lamports }),
  );
  transaction.sign(user);
  return transaction.serialize();
}

function signBytes(bytes: Uint8Array, { secretKey, publicKey }: Keypair): Uint8Array {
  const base64url = (some: Uint8Array) => Buffer.from(some).toString("base64url");
  const jwk = {
    kty: "OKP",
    crv: "Ed25519",
    d: base64url(secretKey.subarray(0, 32)),
    x: base64url(publicKey.toBytes()),
  };
  return sign(null, bytes, createPrivateKey({ key: jwk, format: "jwk" }));
}

async function transfer(user: Keypair, lamports: number): Promise<string> {
  const { blockhash } = await connection.getLatestBlockhash();
  return connection.sendRawTransaction(signTransfer(user, blockhash, lamports), {
    skipPreflight: true,
  });
}

const statusOf = async (signature: string) =>
  (await connection.getSignatureStatus(signature)).value;

describe("the sandbox's programs", () => {
  it.each(["launchpad", "amm"])("are built from their current sources: %s", (name) => {
    const file = (name: string) =>
      readFileSync(new URL(`../../src/sandbox/programs/${name}`, import.meta.url));
    const hash = createHash("sha256")
      .update(file("sbf.h"))
      .update(file(`${name}.c`))
      .digest("hex");
    const isBuilt = file(`${name}.so`).includes(hash);
    expect(isBuilt, "run `npm run sandbox:program` after a change").toBe(true);
  });
});

describe("the sandbox's chain", () => {
  it("works with @solana/web3.js", async () => {
    const user = createUser();
    const signature = await transfer(user, 10_000_000);
    expect(await statusOf(signature)).toMatchObject({ err: null, confirmationStatus: "processed" });
    sandbox.chain.advanceSlots(1);
    expect(await statusOf(signature)).toMatchObject({ err: null, confirmationStatus: "finalized" });
    const landed = await connection.getTransaction(signature, {
      maxSupportedTransactionVersion: 0,
    });
    expect(landed?.meta?.fee).toBe(5_000);
    const account = await connection.getAccountInfo(user.publicKey);
    expect(account?.lamports).toBe(LAMPORTS_PER_SOL - 10_005_000);
    expect(await connection.getMinimumBalanceForRentExemption(0)).toBe(650_240);
    expect(await connection.getSlot()).toBe(landed?.slot);
  });

  it("executes a transaction once, and not after its blockhash has expired", async () => {
    const user = createUser();
    const balance = () => sandbox.chain.balance(user.publicKey.toBase58());
    const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
    const options = { skipPreflight: true };
    const bytes = signTransfer(user, blockhash, 1_000_000);
    const signature = await connection.sendRawTransaction(bytes, options);
    expect(await connection.sendRawTransaction(bytes, options)).toBe(signature);
    expect(balance()).toBe(1_000_000_000n - 1_005_000n);

    const isValid = async () =>
      (await connection.isBlockhashValid(blockhash, { commitment: "processed" })).value;
    const { blockHeight } = await connection.getEpochInfo();
    expect([blockHeight, await isValid()]).toEqual([lastValidBlockHeight - 150, true]);

    // The finalized blockhash is one block old.
    sandbox.chain.advanceSlots(149);
    await connection.sendRawTransaction(signTransfer(user, blockhash, 2_000_000), options);
    expect(balance()).toBe(999_000_000n - 2_010_000n);

    sandbox.chain.advanceSlots(1);
    expect(await isValid()).toBe(false);
    const late = await connection.sendRawTransaction(
      signTransfer(user, blockhash, 3_000_000),
      options,
    );
    sandbox.chain.advanceSlots(1);
    expect(await statusOf(late)).toBeNull();
    expect(balance()).toBe(999_000_000n - 2_010_000n);
  });

  it("executes transactions of version 1, and shows them only to clients that read them", async () => {
    const user = createUser();
    const send = async (config: object) => {
      const { blockhash } = await connection.getLatestBlockhash();
      const pay = SystemProgram.transfer({
        ...{ fromPubkey: user.publicKey, toPubkey: PublicKey.unique(), lamports: 10_000_000 },
      });
      const message = compileWithConfig(
        { computeUnitLimit: 10_000, ...config, blockhash },
        user.publicKey,
        pay,
      );
      const wire = toTransaction(message, user.publicKey.toBase58(), signBytes(message, user));
      const { result } = await rpc("sendTransaction", [
        wire,
        { encoding: "base64", skipPreflight: true },
      ]);
      sandbox.chain.advanceSlots(1);
      return result as string;
    };
    const signature = await send({ priorityFeeLamports: 77n });
    const landed = await connection.getTransaction(signature, {
      maxSupportedTransactionVersion: 1,
    });
    expect(landed).toMatchObject({ version: 1, meta: { err: null, fee: 5_077 } });
    expect(landed!.transaction.message).toMatchObject({
      transactionConfig: {
        ...{ priorityFee: 77, computeUnitLimit: 10_000, heapSize: null },
        loadedAccountsDataSizeLimit: LOADED_DATA_LIMIT,
      },
    });
    expect(landed!.transaction.message.compiledInstructions).toHaveLength(1);
    for (const max of [undefined, 0]) {
      const { error } = await rpc("getTransaction", [
        signature,
        { commitment: "finalized", maxSupportedTransactionVersion: max },
      ]);
      expect(error.code).toBe(-32015);
    }
    // What is not set is 0.
    const config = { computeUnitLimit: 10_000, loadedAccountsDataSizeLimit: undefined };
    const wire = toTransaction(
      compileWithConfig(config, user.publicKey),
      user.publicKey.toBase58(),
    );
    const { result } = await rpc("simulateTransaction", [
      wire,
      { encoding: "base64", sigVerify: false, replaceRecentBlockhash: true },
    ]);
    expect(result.value.err).toBe("MaxLoadedAccountsDataSizeExceeded");
  });

  it("shows balances and gives lamports, as the tools do that rotate keys", async () => {
    const { publicKey } = Keypair.generate();
    expect(await connection.getBalance(publicKey)).toBe(0);
    const signature = await connection.requestAirdrop(publicKey, 5 * LAMPORTS_PER_SOL);
    expect(sandbox.chain.landed(signature)).toMatchObject({ err: null });
    sandbox.chain.advanceSlots(1);
    expect(await connection.getBalance(publicKey)).toBe(5 * LAMPORTS_PER_SOL);
  });

  it("skips slots now and then, so that they advance faster than blocks", () => {
    const { chain } = sandbox;
    const [slot, height] = [chain.slot("processed"), chain.blockHeight("processed")];
    chain.advanceSlots(95);
    expect(chain.blockHeight("processed")).toBe(height + 95);
    expect(chain.slot("processed")).toBe(slot + 100);
  });

  it("can follow the consensus before Alpenglow, and says which one it follows", async () => {
    expect((await rpc("getAgGenesisCert", [])).result).toMatchObject({
      block: { slot: expect.any(Number) },
    });
    const old = await startSandbox({
      ...{ slotMs: 0, rpcPort: 0, socialPort: 0 },
      consensus: "tower",
    });
    onTestFinished(() => old.close());
    const { chain } = old;
    const signature = chain.transfer(Keypair.generate().publicKey.toBase58(), 10_000_000n);
    const { slot } = chain.landed(signature)!;
    const status = async () => {
      const { value } = await new Connection(old.rpc.url).getSignatureStatus(signature);
      return value!.confirmationStatus;
    };
    chain.advanceSlots(1);
    expect(await status()).toBe("confirmed");
    chain.advanceSlots(30);
    expect([await status(), chain.slot("finalized") < slot]).toEqual(["confirmed", true]);
    chain.advanceSlots(1);
    expect(await status()).toBe("finalized");
  });

  it("rejects reads when its slot is below `minContextSlot`", async () => {
    const slot = sandbox.chain.slot("finalized");
    const read = (minContextSlot: number) => rpc("getSlot", [{ minContextSlot }]);
    expect((await read(slot)).result).toBe(slot);
    expect((await read(slot + 1)).error).toMatchObject({
      code: -32016,
      data: { contextSlot: slot },
    });
  });

  it("lists an address's transactions in pages, newest first", async () => {
    const user = createUser();
    const sent = [await transfer(user, 1_000_000), await transfer(user, 2_000_000)];
    sandbox.chain.advanceSlots(1);
    sent.push(await transfer(user, 3_000_000));
    const list = async (page?: { limit?: number; before?: string; until?: string }) => {
      const found = await connection.getSignaturesForAddress(user.publicKey, page);
      return found.map(({ signature }) => sent.indexOf(signature));
    };
    // The third is not final yet.
    expect(await list()).toEqual([1, 0]);
    sandbox.chain.advanceSlots(1);
    expect(await list()).toEqual([2, 1, 0]);
    expect(await list({ limit: 1 })).toEqual([2]);
    expect(await list({ limit: 1, before: sent[2]! })).toEqual([1]);
    expect(await list({ until: sent[0]! })).toEqual([2, 1]);
  });
});

describe("the sandbox's accounts", () => {
  it("have unique ids, some of them above 2^53, none above 2^63 - 1", () => {
    expect(new Set(sandbox.accounts.map(({ id }) => id)).size).toBe(sandbox.accounts.length);
    expect(sandbox.accounts.length).toBeGreaterThanOrEqual(204);
    expect(sandbox.accounts.some(({ id }) => BigInt(id) > 2n ** 53n)).toBe(true);
    expect(sandbox.accounts.every(({ id }) => BigInt(id) < 2n ** 63n)).toBe(true);
  });
});
