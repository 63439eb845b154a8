/**
 * Measures a collect on the sandbox's chain: its duration, compared with a reference on @solana/web3.js's
 * Connection; the gateway's own CPU time; and a transaction's compute units and fee. A slot takes 10 ms, so that
 * the client determines most of the duration.
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
import { createAddresses } from "../src/chain/addresses.ts";
import { createLaunchpad } from "../src/chain/launchpad/instructions.ts";
import { readConfig } from "../src/config.ts";
import { createGateway } from "../src/gateway.ts";
import { createLogger } from "../src/observability/log.ts";
import { startSandbox, type SandboxAccount } from "../src/sandbox/sandbox.ts";

const COLLECTS = 30;

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

async function collectThroughGateway({ id }: SandboxAccount): Promise<void> {
  const request = new Request("http://gateway/collect", {
    method: "POST",
    body: JSON.stringify({ socialId: id }),
  });
  const response = await gateway.fetch(request, { remoteAddress: "127.0.0.1" });
  const { success } = (await response.json()) as { success: boolean };
  if (!success) throw new Error("nothing was collected");
}

/** Polls as often as the gateway does. */
async function collectWithReference(account: SandboxAccount): Promise<void> {
  const [vault, minimum] = await Promise.all([
    connection.getAccountInfo(new PublicKey(account.creatorVault)),
    connection.getMinimumBalanceForRentExemption(0),
  ]);
  if ((vault?.lamports ?? 0) - minimum < 100_000) throw new Error("nothing to collect");
  const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
  const transaction = new Transaction({ blockhash, lastValidBlockHeight, feePayer: feePayer.publicKey }).add(
    launchpad.collectCreatorFee(account),
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
  for (;;) {
    await sleep(400);
    const { value } = await connection.getSignatureStatus(signature);
    if (value?.confirmationStatus === "confirmed" || value?.confirmationStatus === "finalized") break;
  }
  await connection.getTransaction(signature, { maxSupportedTransactionVersion: 0 });
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
  Promise.all(accounts.slice(2 * COLLECTS, 2 * COLLECTS + 50).map(collectThroughGateway)),
);
console.log("| collect | ms | ratio |\n|---|--:|--:|");
console.log(`| reference, median of ${COLLECTS} | ${referenceMs.toFixed(0)} | 1.00 |`);
console.log(
  `| gateway, median of ${COLLECTS} | ${gatewayMs.toFixed(0)} | ${(gatewayMs / referenceMs).toFixed(2)} |`,
);
console.log(
  `| gateway, 50 concurrent, until all are confirmed | ${concurrentMs.toFixed(0)} | ${(concurrentMs / referenceMs).toFixed(2)} |`,
);

/** Microseconds per run, after a warm-up. */
function cost(run: (i: number) => unknown, count = 500): number {
  for (let i = 0; i < count / 5; i++) run(i);
  const startedAt = performance.now();
  for (let i = 0; i < count; i++) run(i);
  return ((performance.now() - startedAt) * 1000) / count;
}
const addressesOf = createAddresses(config.chain);
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
    .add(launchpad.collectCreatorFee(account))
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
