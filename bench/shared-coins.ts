/**
 * Measures transactions that collect a coin's fees, on the sandbox: their bytes, of at most 4,096,
 * and their compute units, which depend on the addresses. Also measures how many units a simulation
 * misses if it sees the curve and the pool empty, because someone has just swept them; and how many
 * of a collect's coins fit into one transaction if no vault is missing. Missing vaults have a
 * separate limit, for rent.
 */
import { setWrappedSol } from "../src/sandbox/chain/accounts.ts";
import { decodeTransaction } from "../src/sandbox/chain/wire-transaction.ts";
import type { NewCoin } from "../src/sandbox/chain/coins.ts";
import { newMint } from "../test/support/new-mint.ts";
import { printHead, printRow, startOnSandbox } from "./measure.ts";

/** The fees on the curve and in the pool; without `pool`, the coin has none. */
interface Fees {
  readonly curve: bigint;
  readonly pool?: bigint;
}

const SOL = 1_000_000_000n;
const RUNS = 20;
const CASES: Readonly<Record<string, Fees>> = {
  curve: { curve: SOL },
  pool: { curve: 0n, pool: SOL },
  "curve and pool": { curve: SOL, pool: SOL },
};

const { sandbox, endpoints, collect, close } = await startOnSandbox();
const { chain, coins } = sandbox;
const account = sandbox.accounts[0]!;

/**
 * Describes a coin whose fees the account and new addresses share equally; with 0, the account is
 * the creator.
 */
function newCoin(shareholders: number): NewCoin {
  const mint = newMint();
  if (shareholders === 0) return { mint, creator: account.address };
  const others = Array.from({ length: shareholders - 1 }, newMint);
  for (const other of others) chain.setBalance(other, SOL);
  const parts = [account.address, ...others].map((address) => ({
    address,
    bps: 10_000 / shareholders,
  }));
  return { mint, creator: account.address, shareholders: parts };
}

/** Creates the coin with these fees, or creates it again. Fees also wait in its creator vault. */
function launch(coin: NewCoin, { curve, pool }: Fees): void {
  coins.launch({ ...coin, fees: curve });
  if (pool !== undefined) coins.migrate(coin.mint, pool);
  const owner = coin.shareholders ? coins.addressesOf(coin.mint).sharingConfig : account;
  chain.setBalance(owner.creatorVault, chain.rentExemptMinimum(0) + SOL);
  setWrappedSol(chain, owner.ammVaultAuthority, 0n);
}

async function collectCoins(some: readonly NewCoin[]) {
  const mints = some.map(({ mint }) => mint);
  const { message, unitsConsumed } = chain.landed(await collect({ socialId: account.id, mints }))!;
  const sent = endpoints[0]!.calls.findLast(({ method }) => method === "sendTransaction");
  const bytes = Buffer.from(String(sent?.params[0]), "base64");
  return { bytes, units: unitsConsumed, keys: message.accountKeys.map(String) };
}

printHead("places", "shareholders", "bytes", "units", "missed units", "coins in one transaction");
for (const [name, fees] of Object.entries(CASES))
  for (const shareholders of [0, 1, 2, 5, 10]) {
    const runs = [];
    for (let i = 0; i < RUNS; i++) {
      const coin = newCoin(shareholders);
      launch(coin, fees);
      const run = await collectCoins([coin]);
      const transaction = decodeTransaction(run.bytes);
      const unitsWith = (others: Fees) => {
        launch(coin, others);
        return chain.simulate(transaction).unitsConsumed;
      };
      const empty = fees.pool === undefined ? { curve: 0n } : { curve: 0n, pool: 0n };
      runs.push({ ...run, missed: unitsWith(fees) - unitsWith(empty) });
    }
    const units = runs.map((run) => run.units).sort((a, b) => a - b);
    const missed = Math.max(...runs.map((run) => run.missed));
    const all = Array.from({ length: 10 }, () => newCoin(shareholders));
    for (const coin of all) launch(coin, fees);
    const { keys } = await collectCoins(all);
    const fit = all.filter(({ mint }) => {
      const { curve, pool } = coins.addressesOf(mint);
      return keys.includes(curve) || keys.includes(pool);
    }).length;
    printRow(
      name,
      shareholders,
      runs[0]!.bytes.length,
      `${units[0]} to ${units.at(-1)}`,
      missed,
      fit,
    );
  }
await close();
