import type { Chain, SandboxTransaction } from "../../src/sandbox/chain/chain.ts";
import type { Sandbox, SandboxAccount } from "../../src/sandbox/sandbox.ts";
import { feesAt } from "../../test/support/coin-balances.ts";
import type { Problems } from "./problems.ts";
import { partOf, type SharedCoin } from "./shared-coins.ts";
import type { Timeline } from "./timeline.ts";

/** What is read of the system under load. */
interface AuditedSystem {
  readonly sandbox: Pick<Sandbox, "accounts" | "chain">;
  readonly feePayer: string;
  readonly accounts: readonly SandboxAccount[];
  readonly sharedCoins: readonly SharedCoin[];
  readonly failingCoins: readonly SharedCoin[];
  readonly timeline: Pick<Timeline, "rentMinimumAt">;
}

/**
 * The total lamports at the addresses of all accounts, and of the strangers who share their coins.
 */
export function totalAtAddresses({
  sandbox,
  sharedCoins,
}: Pick<AuditedSystem, "sandbox" | "sharedCoins">): bigint {
  const strangers = sharedCoins.flatMap((shared) => shared.strangers);
  const addresses = [...sandbox.accounts.map(({ address }) => address), ...strangers];
  return sum(addresses.map((address) => sandbox.chain.balance(address)));
}

/**
 * Checks three things to the lamport. Fees that left vaults and coins arrived at the accounts that
 * they belong to. Each shareholder of a coin received the right part, once. The fee payer paid only
 * for fees and for the rent of missing vaults. Returns sums, and the transactions that moved
 * nothing.
 */
export function checkLedger(system: AuditedSystem, totalBefore: bigint, problems: Problems) {
  const { accounts, failingCoins } = system;
  const sharedCoins = [...system.sharedCoins, ...failingCoins];
  const { feePayer } = system;
  const { chain } = system.sandbox;
  const transactions = chain.ledger().filter(({ message }) => message.accountKeys[0] === feePayer);
  const { rentMinimumAt } = system.timeline;
  const isOwn = (mint: string) => sharedCoins.every(({ coin }) => coin.mint !== mint);
  const receivers = [
    ...accounts.map((account) => ({
      name: account.handle,
      address: account.address,
      places: [
        ...[account.creatorVault, account.ammVault, account.ammVaultAuthority],
        ...account.coins
          .filter(({ mint }) => isOwn(mint))
          .flatMap(({ curve, poolTokens }) => [curve, poolTokens]),
      ],
    })),
    // Strangers of failing coins are left out, because their balances change without transactions.
    ...system.sharedCoins
      .flatMap(({ strangers }) => strangers)
      .map((address) => ({ name: "a stranger", address, places: [] })),
  ];
  /** The lamports that each coin with shared fees has paid, by mint. */
  const paidBy = new Map<string, bigint>();
  const forNothing: SandboxTransaction[] = [];
  let collectedLamports = 0n;
  let costsLamports = 0n;
  let accountsCollected = 0;
  let distributions = 0;
  let vainByStrangers = 0;
  let unpaid = 0;

  for (const transaction of transactions) {
    const { signature, err, feeLamports } = transaction;
    if (err !== null && feeLamports === 0n) {
      unpaid++;
      continue;
    }
    if (err !== null)
      problems.add("a transaction that failed", `${signature}: ${JSON.stringify(err)}`);
    const changes = changesIn(transaction);
    const lostBy = (places: readonly string[]) =>
      -sum(places.map((place) => changes.get(place) ?? 0n));
    const distributed = sharedCoins.flatMap(
      (shared) => readDistribution(shared, transaction, lostBy) ?? [],
    );
    let arrived = 0n;
    for (const { name, address, places } of receivers) {
      const gained = changes.get(address);
      if (gained === undefined) continue;
      const left = lostBy(places) + sum(distributed.map(({ parts }) => parts.get(address) ?? 0n));
      arrived += gained;
      if (places.length > 0) accountsCollected++;
      if (left !== gained)
        problems.add(
          "lamports that did not arrive",
          `${signature} for ${name}: ${left} left the vaults and shared coins, ${gained} arrived`,
        );
    }
    for (const { mint, paid, parts } of distributed) {
      if (paid > 0n) distributions++;
      paidBy.set(mint, (paidBy.get(mint) ?? 0n) + paid);
      if (sum([...parts.values()]) !== paid)
        problems.add(
          "a distribution of other parts than the shares",
          `${signature} of ${mint}: ${paid}`,
        );
    }
    const costs = lostBy([feePayer]);
    costsLamports += costs;
    if (costs !== feeLamports + sum(distributed.map(({ rent }) => rent)))
      problems.add("a fee payer that paid more than the fee and the missing rent", signature);
    collectedLamports += arrived;
    // Strangers emptied their addresses, so the platform paid no shareholder.
    if (arrived <= 0n && namesFailingCoin(transaction)) vainByStrangers++;
    else if (arrived <= 0n) forNothing.push(transaction);
  }

  function namesFailingCoin({ message }: SandboxTransaction): boolean {
    return failingCoins.some(({ coin }) =>
      message.accountKeys.some((address) => address === coin.sharingConfig.creatorVault),
    );
  }

  /**
   * Reads what a transaction distributed of a coin's shared fees, and to whom; undefined if it did
   * not distribute.
   */
  function readDistribution(
    shared: SharedCoin,
    { message, slot, err, preBalances, postBalances }: SandboxTransaction,
    lostBy: (places: readonly string[]) => bigint,
  ) {
    const { mint, curve, poolTokens, sharingConfig } = shared.coin;
    const { creatorVault, ammVault, ammVaultAuthority } = sharingConfig;
    const index = message.accountKeys.findIndex((address) => address === creatorVault);
    if (index < 0 || err !== null) return undefined;
    const before = preBalances[index]!;
    const rentMinimum = rentMinimumAt(slot);
    const rent = before < rentMinimum ? rentMinimum : 0n;
    const paid = lostBy([curve, poolTokens, creatorVault, ammVault, ammVaultAuthority]) + rent;
    // The platform rounds the parts of this amount down, and the rest stays in the vault.
    const amount = paid > 0n ? postBalances[index]! - rentMinimum + paid : 0n;
    const parts = shared.shareholders.map(
      ({ address }) => [address, partOf(amount, shared, address)] as const,
    );
    return { mint, rent, paid, parts: new Map(parts) };
  }

  for (const { coin, arrived } of sharedCoins) {
    const { curve, pool } = feesAt(chain, coin);
    const { creatorVault, ammVault } = coin.sharingConfig;
    const left = curve + pool + aboveRent(chain, creatorVault) + aboveRent(chain, ammVault);
    const paid = paidBy.get(coin.mint) ?? 0n;
    if (arrived !== paid + left)
      problems.add(
        "fees of a shared coin that its shareholders did not receive",
        `${coin.mint}: ${arrived} arrived, ${paid} were paid, ${left} are left`,
      );
  }
  const arrived = totalAtAddresses(system) - totalBefore;
  if (arrived !== collectedLamports)
    problems.add(
      "lamports that no transaction moved",
      `${arrived} arrived, ${collectedLamports} were moved`,
    );
  return {
    transactions: transactions.length,
    /** The number of accounts in all transactions. A transaction can have several accounts. */
    accountsCollected,
    distributions,
    vainByStrangers,
    unpaid,
    collectedLamports,
    /** What the fee payer paid: fees, and rent for the vaults of sharing configs. */
    costsLamports,
    forNothing,
  };
}

/** The lamports above an account's rent-exempt minimum. */
export function aboveRent(chain: Chain, address: string): bigint {
  const account = chain.account(address);
  return account ? account.lamports - chain.rentExemptMinimum(account.data.length) : 0n;
}

/** The change of each account's lamports. */
function changesIn({
  message,
  preBalances,
  postBalances,
}: SandboxTransaction): Map<string, bigint> {
  return new Map(
    message.accountKeys.map((address, i) => [address, postBalances[i]! - preBalances[i]!]),
  );
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}
