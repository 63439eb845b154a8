import { PublicKey } from "@solana/web3.js";
import { keyAt } from "../primitives/derive-address.ts";
import type { Account } from "../rpc/rpc-results.ts";
import { WRAPPED_SOL_MINT } from "./token-accounts.ts";
import { LAUNCHPAD_AMM_PROGRAM_ID, LAUNCHPAD_PROGRAM_ID } from "./program-ids.ts";
import { SHARING_CONFIG_BYTES } from "./sharing-config.ts";

/**
 * Where creator fees are: sweeps move them from the curve to the creator vault, or from the pool to
 * the AMM vault.
 */
export type Stage = "CURVE" | "POOL";

interface Place {
  /** The name of the account's address in `CoinAddresses`. */
  readonly account: "curve" | "pool";
  /** The program that owns the account. */
  readonly program: string;
  readonly layout: Layout;
}

/**
 * Offsets of fields in an account's data, which begins with the discriminator. `bytes`: the newest
 * layout's size.
 */
interface Layout {
  readonly discriminator: Buffer;
  /** Undefined for a pool, which a coin never leaves. */
  readonly isComplete?: number;
  readonly quoteMint: number;
  readonly creator: number;
  readonly isCashback: number;
  readonly isHolderReward: number;
  /** The waiting creator fee, a little-endian u64 in the smallest unit of the quote mint. */
  readonly creatorFee: number;
  readonly bytes: number;
}

/**
 * The curve and the pool, in the order in which a coin trades there. The layouts are those of the
 * launch platform's accounts `BondingCurve` and `Pool`. Older accounts are shorter: their missing
 * bytes read as 0. Source: https://github.com/pump-fun/pump-public-docs/tree/main/idl and
 * docs/instructions/SWEEP_FEES.md.
 */
export const PLACES: Readonly<Record<Stage, Place>> = {
  CURVE: {
    account: "curve",
    program: LAUNCHPAD_PROGRAM_ID,
    layout: {
      discriminator: Buffer.from("17b7f83760d8ac60", "hex"),
      isComplete: 48,
      creator: 49,
      isCashback: 82,
      quoteMint: 83,
      isHolderReward: 124,
      creatorFee: 125,
      bytes: 166,
    },
  },
  POOL: {
    account: "pool",
    program: LAUNCHPAD_AMM_PROGRAM_ID,
    layout: {
      discriminator: Buffer.from("f19a6d0411b16dbc", "hex"),
      quoteMint: 75,
      creator: 211,
      isCashback: 244,
      isHolderReward: 270,
      creatorFee: 279,
      bytes: 287,
    },
  },
};

const DEFAULT_KEY = PublicKey.default.toBase58();

export const STAGES = Object.keys(PLACES) as Stage[];

/** To decode a coin, this many bytes of each of its accounts are needed. */
export const COIN_BYTES = Math.max(
  SHARING_CONFIG_BYTES,
  ...STAGES.map((stage) => PLACES[stage].layout.bytes),
);

/** A decoded bonding curve or pool. */
export interface FeeAccount {
  /** The coin's creator, in base58; the default key if the account names none. */
  readonly creator: string;
  /** In base58; the wrapped SOL mint for a coin that trades in SOL. */
  readonly quoteMint: string;
  /** The waiting creator fee, in the smallest unit of the quote mint. */
  readonly waiting: bigint;
  /** The coin has left this curve for a pool. */
  readonly isComplete: boolean;
  /** The fees go to traders. */
  readonly isCashback: boolean;
  /** The fees go to holders. */
  readonly isHolderReward: boolean;
  /** How many bytes a sweep adds to reach the newest layout, at the payer's expense. */
  readonly missingBytes: number;
}

/** Where a pool has its coin's mint. */
const BASE_MINT = 43;

/** {@link decodePoolMints} needs this many bytes of the account. */
export const POOL_MINTS_BYTES = PLACES.POOL.layout.quoteMint + 32;

/** The mints (base58) of a pool's coin and quote currency; undefined for any other account. */
export function decodePoolMints(
  account: Pick<Account, "owner" | "data"> | undefined,
): { mint: string; quoteMint: string } | undefined {
  const { program, layout } = PLACES.POOL;
  if (account?.owner !== program || account.data.length < POOL_MINTS_BYTES) return undefined;
  if (!account.data.subarray(0, 8).equals(layout.discriminator)) return undefined;
  return {
    mint: keyAt(account.data, BASE_MINT),
    quoteMint: keyAt(account.data, layout.quoteMint),
  };
}

/** Decodes a curve or pool; undefined for any other account. */
export function decodeFeeAccount(
  stage: Stage,
  account: Pick<Account, "owner" | "data"> | undefined,
): FeeAccount | undefined {
  const { program, layout } = PLACES[stage];
  if (account?.owner !== program || !account.data.subarray(0, 8).equals(layout.discriminator)) {
    return undefined;
  }
  const data = Buffer.alloc(layout.bytes);
  account.data.copy(data);
  const quoteMint = keyAt(data, layout.quoteMint);
  return {
    creator: keyAt(data, layout.creator),
    // A curve has the default key instead of a mint if the coin trades in SOL.
    quoteMint: quoteMint === DEFAULT_KEY ? WRAPPED_SOL_MINT : quoteMint,
    waiting: data.readBigUInt64LE(layout.creatorFee),
    isComplete: layout.isComplete !== undefined && data[layout.isComplete] !== 0,
    isCashback: data[layout.isCashback] !== 0,
    isHolderReward: data[layout.isHolderReward] !== 0,
    missingBytes: Math.max(0, layout.bytes - account.data.length),
  };
}
