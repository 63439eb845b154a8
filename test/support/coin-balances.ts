import type { Chain } from "../../src/sandbox/chain/chain.ts";
import type { AccountAddresses } from "../../src/chain/launchpad/account-addresses.ts";
import { curveOf, poolOf } from "./launchpad-instructions.ts";

/** The creator fees that wait on a coin's curve and pool; 0 for a missing account. */
export const coinFees = (chain: Chain, mint: string) =>
  feesAt(chain, { curve: curveOf(mint), pool: poolOf(mint) });

/** The creator fees that wait at the addresses of a coin's curve and pool. */
export function feesAt(
  chain: Chain,
  { curve, pool }: { curve: string; pool: string },
): { curve: bigint; pool: bigint } {
  const read = (address: string, offset: number) => {
    const data = chain.account(address)?.data;
    return data && data.length >= offset + 8 ? Buffer.from(data).readBigUInt64LE(offset) : 0n;
  };
  return { curve: read(curve, 125), pool: read(pool, 279) };
}

/** What the AMM can move from an account's AMM vault: its lamports above its rent. */
export function ammVaultOf(chain: Chain, { ammVault }: AccountAddresses): bigint {
  const account = chain.account(ammVault);
  return account ? account.lamports - chain.rentExemptMinimum(account.data.length) : 0n;
}
