import {
  AddressLookupTableProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  SYSVAR_CLOCK_PUBKEY,
  Transaction,
  TransactionMessage,
  VersionedTransaction,
  type AddressLookupTableAccount,
  type TransactionInstruction,
} from "@solana/web3.js";

/** The answer to one request, without its envelope. */
export interface Answer {
  readonly method: string;
  readonly result?: any;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** A node to ask. Its functions may return promises. */
interface AskedNode {
  readonly url: string;
  /** Whether it supports transactions with lookup tables. */
  readonly hasLookupTables: boolean;
  /** Gives an account lamports; returns when it can spend them. */
  fund(address: string, lamports: number): unknown;
  /** Returns when a transaction that was just sent is final. */
  finalize(signature: string): unknown;
  /** Returns when the finalized block height is above this one. */
  pass(blockHeight: number): unknown;
}

// The parameters of src/chain/rpc.
const FINALIZED = { commitment: "finalized" };
const PROCESSED = { commitment: "processed" };
const ACCOUNTS = { ...FINALIZED, encoding: "base64", dataSlice: { offset: 0, length: 0 } };
const SEND = { encoding: "base64", skipPreflight: true, maxRetries: 0 };
const TRANSACTION = { ...FINALIZED, encoding: "json", maxSupportedTransactionVersion: 1 };
const HISTORY = { searchTransactionHistory: true };
const simulating = (...addresses: readonly string[]) => ({
  ...FINALIZED,
  encoding: "base64",
  sigVerify: false,
  replaceRecentBlockhash: true,
  accounts: { encoding: "base64", addresses },
});

const FUTURE = { minContextSlot: 10 ** 12 };
const FUNDS = 1_000_000_000;
const CLOCK = SYSVAR_CLOCK_PUBKEY.toBase58();
/** Well-formed, and of no transaction. */
const UNKNOWN_SIGNATURE = "5".repeat(87);

const newAddress = () => Keypair.generate().publicKey.toBase58();
/** Blockhashes have the form of addresses. */
const newBlockhash = newAddress;
const newAddresses = (length: number) => Array.from({ length }, newAddress);

/** Calls a JSON-RPC method. */
export async function ask(
  url: string,
  method: string,
  ...params: readonly unknown[]
): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = (await response.json()) as Answer;
  return error ? { method, error } : { method, result };
}

/**
 * Makes the requests of this service at a node. Returns the answers by
 * "<method>: <request>".
 */
export async function askAll(node: AskedNode): Promise<Record<string, Answer>> {
  const answers: Record<string, Answer> = {};
  /** Returns a function that makes a request and keeps its answer. */
  const asker =
    (method: string) =>
    async (request: string, ...params: unknown[]): Promise<any> => {
      const answer = await ask(node.url, method, ...params);
      answers[`${method}: ${request}`] = answer;
      return answer.result;
    };

  for (const method of ["getSlot", "getLatestBlockhash"]) {
    await asker(method)("finalized", FINALIZED);
    await asker(method)("a future minContextSlot", { ...FINALIZED, ...FUTURE });
  }
  await asker("getEpochInfo")("finalized", FINALIZED);
  await asker("getGenesisHash")("no parameters");

  const payer = Keypair.generate();
  const [from, to] = [payer.publicKey.toBase58(), newAddress()];
  await node.fund(from, FUNDS);

  const prices = asker("getRecentPrioritizationFees");
  await prices("128 accounts", newAddresses(128));

  const accounts = asker("getMultipleAccounts");
  const slice = (offset: number, length: number) => ({
    ...ACCOUNTS,
    dataSlice: { offset, length },
  });
  await accounts("one with data, one missing, one without", [CLOCK, newAddress(), from], ACCOUNTS);
  await accounts("a slice over the end", [CLOCK], slice(32, 100));
  await accounts("a slice after the end", [CLOCK, from], slice(1_000, 8));
  await accounts("none", [], ACCOUNTS);
  await accounts("100 accounts", newAddresses(100), ACCOUNTS);
  await accounts("101 accounts", newAddresses(101), ACCOUNTS);
  await accounts("a future minContextSlot", [from], { ...ACCOUNTS, ...FUTURE });

  const lifetime = (await ask(node.url, "getLatestBlockhash", FINALIZED)).result.value;
  const isValid = asker("isBlockhashValid");
  await isValid("current", lifetime.blockhash, PROCESSED);
  await isValid("unknown", newBlockhash(), PROCESSED);

  const toBase64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
  function sign(
    instructions: readonly TransactionInstruction[],
    signer = payer,
    lived = lifetime,
  ): Transaction {
    const transaction = new Transaction({ feePayer: signer.publicKey, ...lived }).add(
      ...instructions,
    );
    transaction.sign(signer);
    return transaction;
  }
  const transfer = (lamports: number, signer = payer) =>
    SystemProgram.transfer({ fromPubkey: signer.publicKey, toPubkey: new PublicKey(to), lamports });
  const signTransfer = (lamports: number, signer = payer, lived = lifetime) =>
    toBase64(sign([transfer(lamports, signer)], signer, lived).serialize());
  function spoilSignature(transaction: string): string {
    const bytes = Buffer.from(transaction, "base64");
    return toBase64(bytes.fill(0, 1, 65));
  }
  const unknownLifetime = { ...lifetime, blockhash: newBlockhash() };
  const failing = signTransfer(2 * FUNDS);
  const unpaid = signTransfer(1, Keypair.generate());
  const unsigned = spoilSignature(signTransfer(2_000_000, payer, unknownLifetime));

  const simulate = asker("simulateTransaction");
  await simulate("no signature, an unknown blockhash", unsigned, simulating(from, to));
  await simulate("accounts of others", unsigned, simulating(CLOCK, newAddress()));
  await simulate("too many accounts", unsigned, simulating(to, to, to, to));
  await simulate("a future minContextSlot", unsigned, { ...simulating(to), ...FUTURE });
  await simulate("a failing instruction", failing, simulating(from, to));
  await simulate("a receiver below rent", signTransfer(1), simulating(to));
  await simulate("a missing fee payer", unpaid, simulating(to));

  const send = asker("sendTransaction");
  const landing = signTransfer(3_000_000);
  const landed: string = await send("a good transaction", landing, SEND);
  await node.finalize(landed);
  const statuses = asker("getSignatureStatuses");
  await statuses("landed and unknown", [landed, UNKNOWN_SIGNATURE], HISTORY);
  await send("a landed transaction again", landing, SEND);
  const failed: string = await send("a failing transaction", failing, SEND);
  await node.finalize(failed);
  await statuses("landed and failed", [landed, failed], HISTORY);
  const never = [
    await send("an unknown blockhash", signTransfer(4_000_000, payer, unknownLifetime), SEND),
    await send("a missing fee payer", unpaid, SEND),
  ];
  await send("a bad signature", spoilSignature(signTransfer(5_000_000)), SEND);
  await statuses("none", [], HISTORY);
  await statuses("256 signatures", Array(256).fill(UNKNOWN_SIGNATURE), HISTORY);
  await statuses("257 signatures", Array(257).fill(UNKNOWN_SIGNATURE), HISTORY);

  const read = asker("getTransaction");
  await read("landed", landed, TRANSACTION);
  await read("failed", failed, TRANSACTION);
  await read("unknown", UNKNOWN_SIGNATURE, TRANSACTION);

  const list = asker("getSignaturesForAddress");
  const page = (options: object = {}) => ({ ...FINALIZED, limit: 31, ...options });
  await list("all", from, page());
  await list("the next page", from, page({ before: failed }));
  await list("an address without any", newAddress(), page());
  await list("an unknown cursor", from, page({ before: UNKNOWN_SIGNATURE }));
  await list("a future minContextSlot", from, page(FUTURE));

  if (node.hasLookupTables) await askWithLookupTable();

  await node.pass(lifetime.lastValidBlockHeight);
  await isValid("expired", lifetime.blockhash, PROCESSED);
  never.push(await send("an expired blockhash", signTransfer(6_000_000), SEND));
  await statuses("sent, but never landed", never, HISTORY);
  return answers;

  /** Makes a table, and a transfer whose receiver is in it. */
  async function askWithLookupTable(): Promise<void> {
    const owner = { authority: payer.publicKey, payer: payer.publicKey };
    const addresses = [new PublicKey(to), SYSVAR_CLOCK_PUBKEY];
    const { result: recentSlot } = await ask(node.url, "getSlot", FINALIZED);
    const [create, key] = AddressLookupTableProgram.createLookupTable({ ...owner, recentSlot });
    const extend = AddressLookupTableProgram.extendLookupTable({
      ...owner,
      lookupTable: key,
      addresses,
    });
    const made = await ask(
      node.url,
      "sendTransaction",
      toBase64(sign([create, extend]).serialize()),
      SEND,
    );
    await node.finalize(made.result as string);
    const table = { key, state: { addresses } } as unknown as AddressLookupTableAccount;
    const { blockhash: recentBlockhash } = lifetime;
    const instructions = [transfer(7_000_000)];
    const message = new TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash,
      instructions,
    });
    const transaction = new VersionedTransaction(message.compileToV0Message([table]));
    transaction.sign([payer]);
    const wire = toBase64(transaction.serialize());
    await simulate("a lookup table", wire, simulating(from, to));
    const signature: string = await send("a lookup table", wire, SEND);
    await node.finalize(signature);
    await read("a lookup table", signature, TRANSACTION);
  }
}
