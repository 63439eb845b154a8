/**
 * Measures collects on the sandbox's chain: how long one takes, what many at once cost, and a
 * transaction's compute units and fee. A slot takes 10 ms, so that the gateway determines most of
 * the duration.
 */
import { createAddresses } from "../src/chain/launchpad/account-addresses.ts";
import { median, printHead, printRow, startOnSandbox, timed } from "./measure.ts";

const COLLECTS = 30;
const MANY = 300;

const { sandbox, config, collect, close } = await startOnSandbox({
  MAX_PRIORITY_FEE_LAMPORTS: "0",
});
const { chain } = sandbox;
const artists = sandbox.accounts
  .filter(
    ({ handle, creatorVault }) =>
      handle.startsWith("artist") && chain.balance(creatorVault) > 10n ** 7n,
  )
  .map(({ id }) => ({ socialId: id }));

const times: number[] = [];
for (const artist of artists.slice(0, COLLECTS)) times.push(await timed(() => collect(artist)));
printHead("collects", "median ms");
printRow(`${COLLECTS}, one after another`, median(times).toFixed(0));

const addressesOf = createAddresses(config);
const ids = Array.from({ length: MANY }, (_, i) => String(10 ** 9 + i));
for (const id of ids)
  chain.setBalance(addressesOf(id).creatorVault, chain.rentExemptMinimum(0) + 1_000_000_000n);
const payer = config.secrets.feePayerKeypair.publicKey.toBase58();
const [balance, landed] = [chain.balance(payer), chain.ledger().length];
const manyMs = await timed(() => Promise.all(ids.map((socialId, i) => collect({ socialId }, i))));
printHead("accounts at once", "ms", "transactions", "lamports each");
const lamportsEach = Number(balance - chain.balance(payer)) / MANY;
printRow(MANY, manyMs.toFixed(0), chain.ledger().length - landed, lamportsEach.toFixed(0));

const graduate = sandbox.accounts.find(({ handle }) => handle === "graduate")!;
printHead("transaction", "compute units", "lamports paid");
for (const [title, account] of [
  ["collect", artists[COLLECTS]!],
  ["collect with the AMM's part", { socialId: graduate.id }],
] as const) {
  const { unitsConsumed, feeLamports } = chain.landed(await collect(account))!;
  printRow(title, unitsConsumed, String(feeLamports));
}
await close();
process.exit(0);
