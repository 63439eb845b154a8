import type { Rent } from "../primitives/rent.ts";
import type { Account } from "../rpc/rpc-results.ts";
import type { CoinAddresses } from "./coin-addresses.ts";
import { PLACES } from "./fee-accounts.ts";
import type { PlatformState } from "./platform-model.ts";
import type { Shareholder } from "./sharing-config.ts";
import { readWrappedSol } from "./token-accounts.ts";
import type { Creator } from "./vaults.ts";

/** Whose accounts the launch platform's instructions change. */
export interface PlatformAccounts {
  /** Receives a collect, or is a coin's sharing config. */
  readonly creator: Creator;
  readonly coin: CoinAddresses | undefined;
  /** Of the sharing config, in its order; empty for another creator. */
  readonly shareholders: readonly Shareholder[];
}

/**
 * The amounts in curves and pools that {@link PLACES} does not have, because collects do not need
 * them. Source: https://github.com/pump-fun/pump-public-docs/tree/main/idl
 */
const CURVE_RESERVES = 32;
const CURVE_PROTOCOL_FEES = 133;
const POOL_VIRTUAL_RESERVES = 245;

type StateAccount = Pick<Account, "lamports" | "data" | "space">;

/** The addresses (base58) of the accounts of which a state consists. */
export function addressesOfState({ creator, coin, shareholders }: PlatformAccounts): string[] {
  return [
    ...[creator.address, creator.creatorVault, creator.ammVault, creator.ammVaultAuthority],
    ...shareholders.map(({ address }) => address),
    ...(coin ? [coin.curve, coin.pool, coin.poolTokens] : []),
  ];
}

/**
 * Decodes the state of the accounts at {@link addressesOfState}, each with its first
 * {@link COIN_BYTES} bytes of data. A missing account, curve or pool is empty.
 */
export function decodePlatformState(
  { creator, coin, shareholders }: PlatformAccounts,
  accounts: ReadonlyMap<string, StateAccount | undefined>,
  rent: Rent,
): PlatformState {
  const lamportsOf = (address: string): bigint => accounts.get(address)?.lamports ?? 0n;
  function sizeOf(address: string | undefined): { lamports: bigint; bytes: number } {
    const account = address === undefined ? undefined : accounts.get(address);
    return {
      lamports: account?.lamports ?? 0n,
      bytes: account?.space ?? account?.data.length ?? 0,
    };
  }
  function u64(address: string | undefined, offset: number): bigint {
    const data = address === undefined ? undefined : accounts.get(address)?.data;
    return data && offset + 8 <= data.length ? data.readBigUInt64LE(offset) : 0n;
  }
  const { curve, pool, poolTokens } = coin ?? {};
  const tokens = poolTokens === undefined ? undefined : accounts.get(poolTokens);
  return {
    rent,
    paid: 0n,
    trace: 0,
    creatorVault: lamportsOf(creator.creatorVault),
    ammVault: lamportsOf(creator.ammVault),
    ammTokens: readWrappedSol(accounts.get(creator.ammVault)),
    ammVaultAuthority: lamportsOf(creator.ammVaultAuthority),
    curve: {
      ...sizeOf(curve),
      reserves: u64(curve, CURVE_RESERVES),
      creatorFee: u64(curve, PLACES.CURVE.layout.creatorFee),
      protocolFees: u64(curve, CURVE_PROTOCOL_FEES),
    },
    pool: {
      ...sizeOf(pool),
      creatorFees: u64(pool, PLACES.POOL.layout.creatorFee),
      wrappedSol: readWrappedSol(tokens) ?? 0n,
      virtualReserves: u64(pool, POOL_VIRTUAL_RESERVES),
    },
    receiver: sizeOf(creator.address),
    shareholders: shareholders.map(({ address, bps }) => ({ ...sizeOf(address), bps })),
  };
}
