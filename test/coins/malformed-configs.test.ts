import { SystemProgram } from "@solana/web3.js";
import { expect } from "vitest";
import type { CoinAddresses } from "../../src/chain/launchpad/coin-addresses.ts";
import { LAUNCHPAD_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import type { Shareholder } from "../../src/chain/launchpad/sharing-config.ts";
import { WRAPPED_SOL_MINT } from "../../src/chain/launchpad/token-accounts.ts";
import { STRANGER } from "../../src/sandbox/chain/sharing.ts";
import type { SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { coinFees } from "../support/coin-balances.ts";
import { newMint } from "../support/new-mint.ts";
import { chain, withWorld, world } from "../support/fixtures.ts";

const SOL = 1_000_000_000n;
/** How many collects may follow one another: more than there are coins. */
const MAX_COLLECTS = 12;

const it = withWorld({
  RATE_LIMIT_MAX: "100000",
  FEE_BUDGET_LAMPORTS_PER_HOUR: "1000000000000",
});
let used = 0;

type Shares = (account: SandboxAccount, coin: CoinAddresses) => readonly Shareholder[];
const share = (address: string, bps = 5_000): Shareholder => ({ address, bps });
const halfTo =
  (otherOf: (account: SandboxAccount, coin: CoinAddresses) => string): Shares =>
  (account, coin) => [share(account.address), share(otherOf(account, coin))];

/**
 * Shareholders that no distribution can pay, or that it must not pay. Anyone can write them into
 * the sharing config of a coin that an account shares.
 */
const MALFORMED: readonly Shares[] = [
  halfTo(() => LAUNCHPAD_PROGRAM_ID),
  // Its id is the default key.
  halfTo(() => SystemProgram.programId.toBase58()),
  halfTo(() => WRAPPED_SOL_MINT),
  halfTo(() => "Sysvar1nstructions1111111111111111111111111"),
  halfTo(() => world.sandbox.feePayer),
  halfTo(({ creatorVault }) => creatorVault),
  halfTo(({ ammVault }) => ammVault),
  halfTo(({ address }) => address),
  halfTo((_, { mint }) => mint),
  halfTo((_, { curve }) => curve),
  halfTo((_, { pool }) => pool),
  halfTo((_, { sharingConfig }) => sharingConfig.address),
  halfTo((_, { sharingConfig }) => sharingConfig.creatorVault),
  halfTo((_, { sharingConfig }) => sharingConfig.ammVault),
  () => [],
  ({ address }) => [share(address, 9_000), share(address, 9_000)],
  ({ address }) => [share(address)],
  ({ address }) => [share(address, 0)],
  ({ address }) => Array<Shareholder>(10).fill(share(address, 1_000)),
  ({ address }) => [share(address, 65_535), share(STRANGER, 65_535)],
];

/** An account that no other test uses, with a SOL in its vault and 1 SOL at its address. */
function newAccount(): SandboxAccount {
  const account = world.account(`artist${String(++used).padStart(3, "0")}`);
  chain.setBalance(account.creatorVault, chain.rentExemptMinimum(0) + SOL);
  chain.setBalance(account.address, SOL);
  return account;
}
/** A coin with these shareholders, and more fees than wait elsewhere. */
function launch(account: SandboxAccount, shares: Shares, fees = { onCurve: 5n * SOL, inPool: 0n }) {
  const mint = newMint();
  const { coins } = world.sandbox;
  const shareholders = shares(account, coins.addressesOf(mint));
  coins.launch({ mint, creator: STRANGER, shareholders, fees: fees.onCurve });
  if (fees.inPool > 0n) coins.migrate(mint, fees.inPool);
  return mint;
}
const unexpected = () => world.logLines.filter((line) => line.includes("failed unexpectedly"));

/**
 * Collects until nothing waits in the vault and on the good coins. The first collect must succeed.
 * Later ones may fail, because they try the malformed coins, but none with an internal error.
 */
async function expectOthersCollected(account: SandboxAccount, malformed: readonly string[]) {
  const own = newMint();
  world.sandbox.coins.launch({ mint: own, creator: account.address, fees: SOL });
  const shared = launch(
    account,
    halfTo(() => STRANGER),
    { onCurve: 2n * SOL, inPool: 0n },
  );
  const good = () =>
    chain.balance(account.creatorVault) -
    chain.rentExemptMinimum(0) +
    coinFees(chain, own).curve +
    coinFees(chain, shared).curve;
  const answers: any[] = [];
  while (answers.length < MAX_COLLECTS && good() > 0n) {
    const { body } = await world.collect(account.id, {}, [...malformed, own, shared]);
    answers.push(body);
    expect(body.error ?? "COLLECT_FAILED").toBe("COLLECT_FAILED");
  }
  expect(answers[0], JSON.stringify(answers)).toMatchObject({ success: true });
  expect(good()).toBe(0n);
  // Alone, a malformed coin has an answer of the contract too.
  for (const mint of malformed) {
    const { body } = await world.collect(account.id, {}, [mint]);
    if (!body.success) expect(["COLLECT_FAILED", "NOTHING_TO_COLLECT"]).toContain(body.error);
    const path = `/wallet/lookup?handle=${account.handle}&mint=${mint}`;
    expect((await world.request(path)).status).toBe(200);
  }
  expect(unexpected()).toEqual([]);
}

it("a collect that names seven coins with malformed sharing configs collects the vault and the other coins", async () => {
  for (let i = 0; i < MALFORMED.length; i += 7) {
    const account = newAccount();
    const malformed = MALFORMED.slice(i, i + 7).map((shares) => launch(account, shares));
    await expectOthersCollected(account, malformed);
  }
});
