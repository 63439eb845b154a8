/**
 * Measures transactions that distribute a coin's shared fees, on the sandbox: their bytes, of at most 4,096, and their
 * compute units, which depend on the addresses. Also measures how many of a collect's coins fit into one transaction if
 * no vault is missing. Missing vaults have a separate limit, for rent.
 */
import { setAmmVault } from "../src/sandbox/chain/creator-fees.ts";
import { newMint } from "../test/support/new-mint.ts";
import { printHead, printRow, startOnSandbox } from "./measure.ts";

const SOL = 1_000_000_000n;
const RUNS = 5;
const PLACES = ["curve", "pool", "curve and pool"] as const;

const { sandbox, collect, close } = await startOnSandbox();
const { chain, coins } = sandbox;
const account = sandbox.accounts[0]!;

/** Launches a coin whose fees the account and new addresses share equally; returns the mint. */
function launch(shareholders: number, places: (typeof PLACES)[number]): string {
  const mint = newMint();
  const others = Array.from({ length: shareholders - 1 }, newMint);
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
  const { sharingConfig } = coins.addressesOf(mint);
  chain.setBalance(sharingConfig.creatorVault, chain.rentExemptMinimum(0));
  setAmmVault(chain, sharingConfig, 0n);
  return mint;
}

async function distribute(mints: readonly string[]) {
  const { message, unitsConsumed } = chain.landed(await collect({ socialId: account.id, mints }))!;
  const sent = sandbox.rpc.calls.findLast(({ method }) => method === "sendTransaction");
  const bytes = Buffer.from(String(sent?.params[0]), "base64").length;
  return { bytes, units: unitsConsumed, keys: message.staticAccounts.map(String) };
}

chain.setBalance(account.creatorVault, 0n);
printHead("places", "shareholders", "bytes", "units", "coins in one transaction");
for (const places of PLACES)
  for (const shareholders of [1, 2, 5, 10]) {
    const runs = [];
    for (let i = 0; i < RUNS; i++) runs.push(await distribute([launch(shareholders, places)]));
    const units = runs.map((run) => run.units).sort((a, b) => a - b);
    const mints = Array.from({ length: 10 }, () => launch(shareholders, places));
    const { keys } = await distribute(mints);
    const fit = mints.filter((mint) => keys.includes(coins.addressesOf(mint).sharingConfig.address)).length;
    printRow(places, shareholders, runs[0]!.bytes, `${units[0]} to ${units.at(-1)}`, fit);
  }
await close();
