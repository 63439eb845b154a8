/**
 * Measures the transactions that distribute a coin's shared fees, on the sandbox: bytes, of the 1,232 that fit into a
 * packet, and compute units, of which addresses need more or less; and how many coins of a collect fit into one.
 */
import { Keypair } from "@solana/web3.js";
import { readConfig } from "../src/config.ts";
import { createGateway } from "../src/gateway.ts";
import { createLogger } from "../src/observability/log.ts";
import { startSandbox } from "../src/sandbox/sandbox.ts";

const SOL = 1_000_000_000n;
const RUNS = 5;
const PLACES = ["curve", "pool", "curve and pool"] as const;

const sandbox = await startSandbox({ slotMs: 10, rpcPort: 0, socialPort: 0 });
const { chain, coins } = sandbox;
const config = readConfig({
  ...sandbox.env,
  RATE_LIMIT_MAX: "1000000",
  FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000",
});
const gateway = createGateway(config, { log: createLogger("silent") });
await gateway.ready;
const account = sandbox.accounts[0]!;
const newKey = () => Keypair.generate().publicKey.toBase58();

/** A coin with fees that the account shares equally with new ones. */
function launch(shareholders: number, places: (typeof PLACES)[number]): string {
  const mint = newKey();
  const others = Array.from({ length: shareholders - 1 }, newKey);
  for (const other of others) chain.setBalance(other, SOL);
  const parts = [account.address, ...others].map((address) => ({ address, bps: 10_000 / shareholders }));
  coins.launch({
    mint,
    creator: account.address,
    kind: "shared",
    shareholders: parts,
    fees: places === "pool" ? 0n : SOL,
  });
  if (places !== "curve") coins.migrate(mint, { fees: SOL });
  return mint;
}

async function collect(mints: readonly string[]) {
  const body = JSON.stringify({ socialId: account.id, mints });
  const request = new Request("http://gateway/collect", { method: "POST", body });
  const response = await gateway.fetch(request, { remoteAddress: "127.0.0.1" });
  const { txSignature } = (await response.json()) as { txSignature: string };
  const { message, unitsConsumed } = chain.landed(txSignature)!;
  const sent = sandbox.rpc.calls.findLast(({ method }) => method === "sendTransaction");
  const bytes = Buffer.from(String(sent?.params[0]), "base64").length;
  return { bytes, units: unitsConsumed, keys: message.staticAccounts.map(String) };
}

chain.setBalance(account.creatorVault, 0n);
console.log("| shareholders | places | bytes | units | coins in one transaction |\n|--:|---|--:|--:|--:|");
for (const places of PLACES)
  for (const shareholders of [1, 2, 5, 10]) {
    const runs = [];
    for (let i = 0; i < RUNS; i++) runs.push(await collect([launch(shareholders, places)]));
    const units = runs.map((run) => run.units).sort((a, b) => a - b);
    const mints = Array.from({ length: 5 }, () => launch(shareholders, places));
    const { keys } = await collect(mints);
    const fit = mints.filter((mint) => keys.includes(coins.addressesOf(mint).sharingConfig.address)).length;
    console.log(
      `| ${shareholders} | ${places} | ${runs[0]!.bytes} | ${units[0]} to ${units.at(-1)} | ${fit} |`,
    );
  }
gateway.drain();
await gateway.settled();
gateway.close();
await sandbox.close();
