import { formatSol, toLamports } from "../../src/chain/lamports.ts";
import { readConfig } from "../../src/config.ts";
import type { LandedTransaction } from "../../src/sandbox/chain/chain.ts";
import type { World } from "../../test/support/world.ts";
import type { ReportedCollect } from "./callers.ts";

/** A run according to the chain's ledger. */
export interface Audit {
  readonly transactions: number;
  readonly collectedLamports: bigint;
  readonly feesLamports: bigint;
  /** Mismatches between the ledger, the responses and the metrics. */
  readonly problems: readonly string[];
}

/** The total lamports at all accounts' addresses. */
export function totalAtAddresses({ sandbox }: World): bigint {
  return sum(sandbox.accounts.map(({ address }) => sandbox.chain.balance(address)));
}

/**
 * Compares the responses and the gateway's metrics with the ledger, to the lamport. Call it when no collect is in
 * flight. `totalBefore` is {@link totalAtAddresses} at the start.
 */
export async function audit(
  world: World,
  totalBefore: bigint,
  {
    reported,
    expiredSignatures,
  }: { reported: readonly ReportedCollect[]; expiredSignatures: readonly string[] },
): Promise<Audit> {
  const { chain, accounts, env } = world.sandbox;
  const problems: string[] = [];
  const feePayer = readConfig(env).secrets.feePayer.publicKey.toBase58();
  const transactions = chain.ledger().filter(({ message }) => message.staticAccounts[0] === feePayer);

  let collectedLamports = 0n;
  for (const transaction of transactions) {
    const { signature, err, feeLamports } = transaction;
    if (err !== null) problems.push(`${signature} failed on chain: ${JSON.stringify(err)}`);
    const changes = changesIn(transaction);
    const account = accounts.find(({ address }) => changes.has(address));
    const arrived = changes.get(account?.address ?? "") ?? 0n;
    const left = -sum(
      [account?.creatorVault, account?.ammVault, account?.ammVaultAuthority].map(
        (vault) => changes.get(vault ?? "") ?? 0n,
      ),
    );
    collectedLamports += arrived;
    if (arrived <= 0n) problems.push(`${signature} cost its fee and moved nothing`);
    if (left !== arrived) problems.push(`${signature}: ${left} left the vaults, ${arrived} arrived`);
    if (changes.get(feePayer) !== -feeLamports)
      problems.push(`${signature}: the fee payer paid more than the fee`);
  }

  for (const { socialId, collected, newBalance, txSignature } of reported) {
    const account = accounts.find(({ id }) => id === socialId);
    const landed = chain.landed(txSignature);
    const index = landed?.message.staticAccounts.findIndex((address) => address === account?.address) ?? -1;
    const after = landed?.postBalances[index];
    const moved = landed && account ? changesIn(landed).get(account.address) : undefined;
    if (after === undefined || moved === undefined || landed?.err !== null) {
      problems.push(`a response names ${txSignature}, which did not collect for ${socialId}`);
    } else if (collected !== formatSol(toLamports(moved)) || newBalance !== formatSol(toLamports(after))) {
      problems.push(
        `a response reports ${collected} collected by ${txSignature} and ${newBalance} afterwards, the chain ${moved} and ${after}`,
      );
    }
  }
  for (const signature of expiredSignatures) {
    if (chain.landed(signature)) problems.push(`${signature} landed, but was reported as expired`);
  }

  const feesLamports = sum(transactions.map(({ feeLamports }) => feeLamports));
  const arrived = totalAtAddresses(world) - totalBefore;
  if (arrived !== collectedLamports)
    problems.push(`transactions moved ${collectedLamports} lamports, but the addresses have ${arrived} more`);
  const metrics = (await world.request("/metrics")).body as string;
  for (const [name, expected] of [
    ["tributary_collected_lamports_total", collectedLamports],
    ["tributary_fees_spent_lamports_total", feesLamports],
  ] as const) {
    const counted = new RegExp(`^${name} (\\S+)$`, "m").exec(metrics)?.[1];
    if (Number(counted) !== Number(expected))
      problems.push(`${name} is ${counted}, but ${expected} on the chain`);
  }
  return { transactions: transactions.length, collectedLamports, feesLamports, problems };
}

/** The change of each account's lamports. */
function changesIn({ message, preBalances, postBalances }: LandedTransaction): Map<string, bigint> {
  return new Map(message.staticAccounts.map((address, i) => [address, postBalances[i]! - preBalances[i]!]));
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n);
}
