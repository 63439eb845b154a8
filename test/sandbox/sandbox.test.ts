import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";

let sandbox: Sandbox;
let connection: Connection;
beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
  connection = new Connection(sandbox.rpc.url, "confirmed");
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

describe("the sandbox's programs", () => {
  it.each(["launchpad", "amm"])("are built from the sources beside them: %s", (name) => {
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
  it("serves a user of @solana/web3.js", async () => {
    const user = Keypair.generate();
    const airdrop = await connection.requestAirdrop(user.publicKey, LAMPORTS_PER_SOL);
    sandbox.chain.advanceSlots(1);
    expect((await connection.getSignatureStatus(airdrop)).value).toMatchObject({
      err: null,
      confirmationStatus: "confirmed",
    });
    expect(await connection.getBalance(user.publicKey)).toBe(LAMPORTS_PER_SOL);

    const { blockhash } = await connection.getLatestBlockhash();
    const transaction = new VersionedTransaction(
      new TransactionMessage({
        payerKey: user.publicKey,
        recentBlockhash: blockhash,
        instructions: [
          SystemProgram.transfer({
            fromPubkey: user.publicKey,
            toPubkey: PublicKey.unique(),
            lamports: 10_000_000,
          }),
        ],
      }).compileToV0Message(),
    );
    transaction.sign([user]);
    const signature = await connection.sendTransaction(transaction);
    sandbox.chain.advanceSlots(1);
    const landed = await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
    expect(landed?.meta?.fee).toBe(5_000);
    expect(await connection.getBalance(user.publicKey)).toBe(LAMPORTS_PER_SOL - 10_005_000);
    expect(await connection.getMinimumBalanceForRentExemption(0)).toBe(650_240);
    expect(await connection.getSlot()).toBeGreaterThan(0);
    expect(await connection.getVersion()).toHaveProperty("solana-core");
  });

  it("takes a transaction once, and none whose blockhash has expired", async () => {
    const user = Keypair.generate();
    sandbox.chain.setBalance(user.publicKey.toBase58(), 1_000_000_000n);
    const sign = (blockhash: string, lamports: number) => {
      const transfer = SystemProgram.transfer({
        fromPubkey: user.publicKey,
        toPubkey: PublicKey.unique(),
        lamports,
      });
      const message = new TransactionMessage({
        payerKey: user.publicKey,
        recentBlockhash: blockhash,
        instructions: [transfer],
      });
      const transaction = new VersionedTransaction(message.compileToLegacyMessage());
      transaction.sign([user]);
      return Buffer.from(transaction.serialize()).toString("base64");
    };
    const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
    const options = { encoding: "base64", skipPreflight: true };
    const once = sign(blockhash, 1_000_000);
    const first = await rpc("sendTransaction", [once, options]);
    const again = await rpc("sendTransaction", [once, options]);
    expect(again.result).toBe(first.result);
    const balance = await connection.getBalance(user.publicKey);
    expect(balance).toBe(1_000_000_000 - 1_005_000);

    const late = sign(blockhash, 2_000_000);
    expect((await connection.isBlockhashValid(blockhash)).value).toBe(true);
    sandbox.chain.advanceSlots(152);
    expect(await connection.getBlockHeight()).toBeGreaterThan(lastValidBlockHeight);
    expect((await connection.isBlockhashValid(blockhash)).value).toBe(false);
    const { result: lateSignature } = await rpc("sendTransaction", [late, options]);
    sandbox.chain.advanceSlots(1);
    expect((await connection.getSignatureStatus(lateSignature)).value).toBeNull();
    expect(await connection.getBalance(user.publicKey)).toBe(balance);
  });

  it("puts new fees into a creator's vault on request, and says what is wrong with a request", async () => {
    const { address, creatorVault } = sandbox.accounts.find(({ handle }) => handle === "newcomer")!;
    expect(sandbox.chain.balance(creatorVault)).toBe(0n);
    const { result } = await rpc("sandboxAddCreatorFees", [address, 1_000_000]);
    expect(sandbox.chain.landed(result)?.err).toBeNull();
    expect(sandbox.chain.balance(creatorVault)).toBe(sandbox.chain.rentExemptMinimum(0) + 1_000_000n);
    for (const params of [
      [],
      ["nonsense", 1],
      [address, 0],
      [address, 1.5],
      [address, "1"],
      [address, 1, 2],
      [address, 1, "bonding curve"],
    ]) {
      expect((await rpc("sandboxAddCreatorFees", params)).error.code).toBe(-32602);
    }
  });

  it("knows no other methods", async () => {
    expect((await rpc("getEverything", [])).error.code).toBe(-32601);
  });
});

describe("the sandbox's accounts", () => {
  it("have ids past 2^53 among them, each its own", () => {
    expect(new Set(sandbox.accounts.map(({ id }) => id)).size).toBe(sandbox.accounts.length);
    expect(sandbox.accounts.length).toBeGreaterThanOrEqual(204);
    expect(sandbox.accounts.some(({ id }) => BigInt(id) > 2n ** 63n)).toBe(true);
  });
});
