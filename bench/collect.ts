/**
 * Measures a collect on the sandbox's chain: its duration, compared with a reference on @solana/web3.js's
 * Connection; the gateway's own CPU time; and a transaction's compute units and fee. A slot takes 10 ms, so that
 * the client determines most of the duration. Also 300 accounts at once, beside transactions written by hand.
 */
import { createPrivateKey, sign } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  ComputeBudgetProgram,
  Connection,
  Keypair,
  PublicKey,
  Transaction,
  VersionedTransaction,
} from "@solana/web3.js";
import { createAddresses, type AccountAddresses } from "../src/chain/addresses.ts";
import { createLaunchpad, toTransactionInstruction } from "../src/chain/launchpad/instructions.ts";
import { readConfig } from "../src/config.ts";
import { createGateway } from "../src/gateway.ts";
import { createLogger } from "../src/observability/log.ts";
import { startSandbox, type SandboxAccount } from "../src/sandbox/sandbox.ts";

const COLLECTS = 30;
const MANY = 300;

const sandbox = await startSandbox({ slotMs: 10, rpcPort: 0, socialPort: 0 });
const config = readConfig({ ...sandbox.env, RATE_LIMIT_MAX: "1000000", MAX_PRIORITY_FEE_LAMPORTS: "0" });
const gateway = createGateway(config, { log: createLogger("silent") });
const launchpad = createLaunchpad(config.chain);
const connection = new Connection(sandbox.env.SOLANA_RPC_URL, "confirmed");
const { feePayer } = config.secrets;
const accounts = sandbox.accounts.filter(
  ({ handle, creatorVault }) =>
    handle.startsWith("artist") && sandbox.chain.balance(creatorVault) > 10_000_000n,
);

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
async function timed(run: () => unknown): Promise<number> {
  const startedAt = performance.now();
  await run();
  return performance.now() - startedAt;
}

async function collectThroughGateway(
  { id }: { readonly id: string },
  remoteAddress = "127.0.0.1",
): Promise<void> {
  const request = new Request("http://gateway/collect", {
    method: "POST",
    body: JSON.stringify({ socialId: id }),
  });
  const response = await gateway.fetch(request, { remoteAddress });
  const { success } = (await response.json()) as { success: boolean };
  if (!success) throw new Error("nothing was collected");
}

/** Waits for a transaction; polls as often as the gateway does. */
async function confirmWithReference(signature: string): Promise<void> {
  for (;;) {
    await sleep(400);
    const { value } = await connection.getSignatureStatus(signature);
    if (value?.confirmationStatus === "confirmed" || value?.confirmationStatus === "finalized") break;
  }
  await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
}

async function collectWithReference(account: SandboxAccount): Promise<void> {
  const [vault, minimum] = await Promise.all([
    connection.getAccountInfo(new PublicKey(account.creatorVault)),
    connection.getMinimumBalanceForRentExemption(0),
  ]);
  if ((vault?.lamports ?? 0) - minimum < 100_000) throw new Error("nothing to collect");
  const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
  const transaction = new Transaction({ blockhash, lastValidBlockHeight, feePayer: feePayer.publicKey }).add(
    toTransactionInstruction(launchpad.collectCreatorFee(account)),
  );
  const simulated = await connection.simulateTransaction(
    new VersionedTransaction(transaction.compileMessage()),
    {
      replaceRecentBlockhash: true,
    },
  );
  transaction.instructions.unshift(
    ComputeBudgetProgram.setComputeUnitLimit({
      units: Math.ceil((simulated.value.unitsConsumed ?? 0) * 1.2) + 300,
    }),
  );
  transaction.sign(feePayer);
  const signature = await connection.sendRawTransaction(transaction.serialize(), { skipPreflight: true });
  await confirmWithReference(signature);
}

/** What a caller would write by hand for many accounts: eleven in each transaction. */
async function collectManyWithReference(vaults: readonly AccountAddresses[]): Promise<void> {
  const groups: AccountAddresses[][] = [];
  for (let i = 0; i < vaults.length; i += 11) groups.push(vaults.slice(i, i + 11));
  const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
  await Promise.all(
    groups.map(async (group) => {
      const keys = group.map(({ creatorVault }) => new PublicKey(creatorVault));
      await connection.getMultipleAccountsInfo(keys);
      const transaction = new Transaction({ blockhash, lastValidBlockHeight, feePayer: feePayer.publicKey });
      transaction.add(...group.map((each) => toTransactionInstruction(launchpad.collectCreatorFee(each))));
      const { value } = await connection.simulateTransaction(
        new VersionedTransaction(transaction.compileMessage()),
        { replaceRecentBlockhash: true },
      );
      const units = Math.ceil((value.unitsConsumed ?? 0) * 1.2) + 300;
      transaction.instructions.unshift(ComputeBudgetProgram.setComputeUnitLimit({ units }));
      transaction.sign(feePayer);
      const signature = await connection.sendRawTransaction(transaction.serialize(), { skipPreflight: true });
      await confirmWithReference(signature);
    }),
  );
}

const times: Record<"reference" | "gateway", number[]> = { reference: [], gateway: [] };
for (let i = 0; i < COLLECTS; i++) {
  const [one, other] = [accounts[2 * i]!, accounts[2 * i + 1]!];
  times.reference.push(await timed(() => collectWithReference(one)));
  times.gateway.push(await timed(() => collectThroughGateway(other)));
}
const referenceMs = median(times.reference);
const gatewayMs = median(times.gateway);
const concurrentMs = await timed(() =>
  Promise.all(
    accounts.slice(2 * COLLECTS, 2 * COLLECTS + 50).map((account) => collectThroughGateway(account)),
  ),
);
console.log("| collect | ms | ratio |\n|---|--:|--:|");
console.log(`| reference, median of ${COLLECTS} | ${referenceMs.toFixed(0)} | 1.00 |`);
console.log(
  `| gateway, median of ${COLLECTS} | ${gatewayMs.toFixed(0)} | ${(gatewayMs / referenceMs).toFixed(2)} |`,
);
console.log(
  `| gateway, 50 concurrent, until all are confirmed | ${concurrentMs.toFixed(0)} | ${(concurrentMs / referenceMs).toFixed(2)} |`,
);

/** Collects `MANY` new accounts at once; returns a row of the table. */
async function measureMany(title: string, first: number, run: (ids: readonly string[]) => Promise<unknown>) {
  const { chain } = sandbox;
  const ids = Array.from({ length: MANY }, (_, i) => String(first + i));
  for (const id of ids)
    chain.setBalance(addressesOf(id).creatorVault, chain.rentExemptMinimum(0) + 1_000_000_000n);
  const payer = feePayer.publicKey.toBase58();
  const [paid, landed] = [chain.balance(payer), chain.ledger().length];
  const calls = sandbox.rpc.calls.length;
  const ms = await timed(() => run(ids));
  const perAccount = (amount: number) => amount / MANY;
  const fees = perAccount(Number(paid - chain.balance(payer)));
  const unshared = sandbox.rpc.calls
    .slice(calls)
    .filter(({ method }) => method !== "getMultipleAccounts" && method !== "getSignatureStatuses");
  console.log(
    `| ${title} | ${ms.toFixed(0)} | ${chain.ledger().length - landed} | ${fees.toFixed(0)} | ${perAccount(unshared.length).toFixed(2)} |`,
  );
}
const addressesOf = createAddresses(config.chain);
console.log(
  `\n| ${MANY} accounts at once | ms | transactions | lamports each | unshared calls each |\n|---|--:|--:|--:|--:|`,
);
await measureMany("by hand, eleven per transaction", 3 * 10 ** 9, (ids) =>
  collectManyWithReference(ids.map(addressesOf)),
);
await measureMany("gateway, one request each", 4 * 10 ** 9, (ids) =>
  Promise.all(ids.map((id, i) => collectThroughGateway({ id }, `10.0.${i >> 8}.${i & 255}`))),
);

/** Microseconds per run, after a warm-up. */
function cost(run: (i: number) => unknown, count = 500): number {
  for (let i = 0; i < count / 5; i++) run(i);
  const startedAt = performance.now();
  for (let i = 0; i < count; i++) run(i);
  return ((performance.now() - startedAt) * 1000) / count;
}
const keypair = Keypair.generate();
const base64url = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url");
const key = createPrivateKey({
  format: "jwk",
  key: {
    kty: "OKP",
    crv: "Ed25519",
    d: base64url(keypair.secretKey.subarray(0, 32)),
    x: base64url(keypair.publicKey.toBytes()),
  },
});
const { blockhash } = await connection.getLatestBlockhash();
const compile = (account: SandboxAccount) =>
  new Transaction({ blockhash, lastValidBlockHeight: 1, feePayer: keypair.publicKey })
    .add(toTransactionInstruction(launchpad.collectCreatorFee(account)))
    .compileMessage();
const message = compile(accounts[0]!);
const bytes = message.serialize();
console.log("\n| the gateway's own work | µs |\n|---|--:|");
console.log(
  `| derive an account's address | ${cost((i) => addressesOf(String(10 ** 9 + i)).address, 200).toFixed(0)} |`,
);
console.log(
  `| derive its address and vaults | ${cost((i) => {
    const { creatorVault, ammVault } = addressesOf(String(2 * 10 ** 9 + i));
    return creatorVault + ammVault;
  }, 200).toFixed(0)} |`,
);
console.log(`| compile the message | ${cost(() => compile(accounts[0]!)).toFixed(0)} |`);
console.log(`| sign with node:crypto | ${cost(() => sign(null, bytes, key)).toFixed(0)} |`);
console.log(
  `| sign with the library | ${cost(() => {
    new VersionedTransaction(message).sign([keypair]);
  }).toFixed(0)} |`,
);

await collectThroughGateway(sandbox.accounts.find(({ handle }) => handle === "graduate")!);
console.log("\n| transaction | compute units | lamports paid |\n|---|--:|--:|");
const collects = sandbox.chain
  .ledger()
  .filter(({ logs }) => logs.some((line) => line.includes(`${config.chain.launchpadProgramId} invoke`)));
for (const [title, withAmm] of [
  ["collect", false],
  ["collect with the AMM's part", true],
] as const) {
  const transaction = collects.findLast(
    ({ logs }) =>
      logs.some((line) => line.includes(`${config.chain.launchpadAmmProgramId} invoke`)) === withAmm,
  )!;
  console.log(`| ${title} | ${transaction.unitsConsumed} | ${transaction.feeLamports} |`);
}
await gateway.settled();
await sandbox.close();
process.exit(0);
