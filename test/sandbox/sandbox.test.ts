import { createStandstill } from "../support/chain-levers.ts";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";

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
    expect(await connection.getBalance(user.publicKey)).toBe(LAMPORTS_PER_SOL - 10_005_000);
    expect(await connection.getSlot()).toBe(landed?.slot);
  });

  it("shows balances and gives lamports, as the tools do that rotate keys", async () => {
    const { publicKey } = Keypair.generate();
    expect(await connection.getBalance(publicKey)).toBe(0);
    const signature = await connection.requestAirdrop(publicKey, 5 * LAMPORTS_PER_SOL);
    expect(sandbox.chain.landed(signature)).toMatchObject({ err: null });
    sandbox.chain.advanceSlots(1);
    expect(await connection.getBalance(publicKey)).toBe(5 * LAMPORTS_PER_SOL);
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
