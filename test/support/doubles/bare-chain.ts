import { createPublicKey, verify } from "node:crypto";
import { getBase58Decoder } from "@solana/codecs-strings";
import { VersionedTransaction } from "@solana/web3.js";
import { startJsonServer } from "./json-server.ts";

const RENT_SYSVAR = "SysvarRent111111111111111111111111111111111";
/**
 * Mainnet's until 2026: 3,480 lamports per byte and year as a u64, 2 years as an f64, and a byte.
 */
const RENT_DATA = "mA0AAAAAAAAAAAAAAAAAQDI=";
const RENT_MINIMUM = 890_880n;
const COLLECT_CREATOR_FEE = "1416567bc61cdb84";
const FEE = 5_000n;
const SPKI_ED25519 = Buffer.from("302a300506032b6570032100", "hex");

interface LandedTransaction {
  readonly keys: string[];
  readonly before: bigint[];
  readonly after: bigint[];
}

/**
 * A minimal chain: a table of lamports and the JSON-RPC methods that a collect needs. It executes
 * only the launchpad's `collect_creator_fee`, and verifies signatures.
 */
export async function startBareChain(balances: Map<string, bigint>) {
  const landed = new Map<string, LandedTransaction>();
  const slot = 1_000;

  function execute(transaction: VersionedTransaction): LandedTransaction {
    const keys = transaction.message.staticAccountKeys.map((key) => key.toBase58());
    const before = keys.map((key) => balances.get(key) ?? 0n);
    const after = [...before];
    for (const { data, accountKeyIndexes } of transaction.message.compiledInstructions) {
      if (Buffer.from(data).toString("hex") !== COLLECT_CREATOR_FEE) continue;
      const [creator, vault] = accountKeyIndexes as [number, number];
      after[creator]! += after[vault]! - RENT_MINIMUM;
      after[vault] = RENT_MINIMUM;
    }
    after[0]! -= FEE;
    return { keys, before, after };
  }

  const decode = (base64: string) =>
    VersionedTransaction.deserialize(Buffer.from(base64, "base64"));
  const toAccount = (lamports: bigint | undefined) =>
    lamports === undefined
      ? null
      : {
          lamports: Number(lamports),
          owner: "11111111111111111111111111111111",
          data: ["", "base64"],
          executable: false,
          rentEpoch: 0,
          space: 0,
        };
  const RENT = { ...toAccount(1_009_200n), data: [RENT_DATA, "base64"], space: 17 };
  const inContext = (value: unknown) => ({ context: { slot }, value });

  const methods: Record<string, (params: any) => unknown> = {
    getMultipleAccounts: ([keys]: [string[]]) =>
      inContext(keys.map((key) => (key === RENT_SYSVAR ? RENT : toAccount(balances.get(key))))),
    getLatestBlockhash: () =>
      inContext({
        blockhash: "4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi",
        lastValidBlockHeight: 1_150,
      }),
    getSlot: () => slot,
    getEpochInfo: () => ({ blockHeight: slot, absoluteSlot: slot }),
    simulateTransaction: ([base64, options]: [string, { accounts?: { addresses: string[] } }]) => {
      const { keys, after } = execute(decode(base64));
      const accounts = options.accounts?.addresses.map((address) =>
        toAccount(after[keys.indexOf(address)]),
      );
      return inContext({ err: null, logs: [], unitsConsumed: 5_000, accounts });
    },
    sendTransaction: ([base64]: [string]) => {
      const transaction = decode(base64);
      const signature = transaction.signatures[0]!;
      const payer = transaction.message.staticAccountKeys[0]!;
      const key = createPublicKey({
        key: Buffer.concat([SPKI_ED25519, payer.toBytes()]),
        format: "der",
        type: "spki",
      });
      const bytes = Buffer.from(base64, "base64");
      // Signatures follow a message of version 1, and precede others, with their number.
      const message =
        transaction.message.version === 1 ? bytes.subarray(0, -64) : bytes.subarray(1 + 64);
      if (!verify(null, message, key, signature)) throw new Error("bad signature");
      const id = getBase58Decoder().decode(signature);
      if (!landed.has(id)) {
        const result = execute(transaction);
        landed.set(id, result);
        result.keys.forEach((address, i) => balances.set(address, result.after[i]!));
      }
      return id;
    },
    getSignatureStatuses: ([signatures]: [string[]]) =>
      inContext(
        signatures.map((signature) =>
          landed.has(signature)
            ? { slot, confirmations: null, err: null, confirmationStatus: "finalized" }
            : null,
        ),
      ),
    getTransaction: ([signature]: [string]) => {
      const found = landed.get(signature);
      if (!found) return null;
      return {
        slot,
        transaction: { signatures: [signature], message: { accountKeys: found.keys } },
        meta: {
          err: null,
          fee: Number(FEE),
          preBalances: found.before.map(Number),
          postBalances: found.after.map(Number),
          loadedAddresses: { writable: [], readonly: [] },
        },
      };
    },
  };

  const server = await startJsonServer(({ body }) => {
    const { id, method, params } = JSON.parse(body) as {
      id: number;
      method: string;
      params: unknown[];
    };
    const run = methods[method];
    if (!run)
      return { body: { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } } };
    return { body: { jsonrpc: "2.0", id, result: run(params) } };
  });
  return { ...server, landed };
}
