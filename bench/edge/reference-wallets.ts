/**
 * The lookups of both references, with the gateway's caching: accounts and addresses are cached, balances are read
 * separately for each request, with @solana/web3.js's Connection.
 */
import { Connection, PublicKey } from "@solana/web3.js";
import { createAddresses, type AccountAddresses } from "../../src/chain/addresses.ts";

export interface Wallet {
  addresses: AccountAddresses;
  address: string;
  handle: string;
  socialId: string;
}

export const TYPES = `
  type Query { wallet(handle: String!): Wallet }
  type Wallet { handle: String socialId: String! address: String! balance: Balance }
  type Balance { vault: String! pda: String! total: String! }
`;

const { SOCIAL_API_URL, SOLANA_RPC_URL, ESCROW_PROGRAM_ID } = process.env as Record<string, string>;
const connection = new Connection(SOLANA_RPC_URL!, "confirmed");
const addressesOf = createAddresses({
  escrowProgramId: ESCROW_PROGRAM_ID!,
  escrowSeed: "social",
  launchpadProgramId: "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P",
  launchpadAmmProgramId: "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA",
});
const cache = new Map<string, Wallet>();
const rentMinimum = await connection.getMinimumBalanceForRentExemption(0);

export async function findWallet(handle: string): Promise<Wallet> {
  const cached = cache.get(handle.toLowerCase());
  if (cached) return cached;
  const response = await fetch(`${SOCIAL_API_URL}/2/users/by?usernames=${handle}`);
  const { data } = (await response.json()) as { data: [{ id: string; username: string }] };
  const { id: socialId, username } = data[0];
  const addresses = addressesOf(socialId);
  const wallet = { handle: username, socialId, address: addresses.address, addresses };
  cache.set(handle.toLowerCase(), wallet);
  return wallet;
}

const toSol = (lamports: number) => (Math.floor(lamports / 1e5) / 1e4).toFixed(4);

export async function readBalances(wallets: readonly Wallet[]) {
  const keys = wallets.flatMap(({ addresses: of }) => [of.address, of.creatorVault, of.ammVault]);
  const accounts: Awaited<ReturnType<typeof connection.getMultipleAccountsInfo>> = [];
  for (let i = 0; i < keys.length; i += 100) {
    const part = keys.slice(i, i + 100).map((key) => new PublicKey(key));
    accounts.push(...(await connection.getMultipleAccountsInfo(part)));
  }
  return wallets.map((_, i) => {
    const [pda, vault, amm] = accounts.slice(3 * i, 3 * i + 3);
    const inAmm = amm && amm.data.length >= 72 ? Number(amm.data.readBigUInt64LE(64)) : 0;
    const collectable = Math.max(0, (vault?.lamports ?? 0) + inAmm - rentMinimum);
    const atAddress = pda?.lamports ?? 0;
    return { vault: toSol(collectable), pda: toSol(atAddress), total: toSol(collectable + atAddress) };
  });
}
