import { PublicKey } from "@solana/web3.js";
import { keyAt } from "../primitives/derive-address.ts";
import { saturatingSubtract, toLamports, type Lamports } from "../primitives/lamports.ts";
import { rentMinimumOf, type Rent } from "../primitives/rent.ts";
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
 * layout's size. `bytesWithFee`: a shorter account has no creator fee, whatever its bytes say.
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
  /**
   * Other amounts in a curve's lamports: its reserves, and the platform's own fees. A pool keeps
   * its amounts in token accounts.
   */
  readonly otherAmounts: readonly number[];
  readonly bytesWithFee: number;
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
      otherAmounts: [32, 133],
      bytesWithFee: 141,
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
      otherAmounts: [],
      bytesWithFee: 287,
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
  /**
   * The lamports that a sweep's payer adds, so that the account is rent-exempt in the newest layout
   * beside the amounts that it holds.
   */
  readonly topUp: Lamports;
}

/** Where a pool has its coin's mint. */
const BASE_MINT = 43;

/** {@link decodePoolMints} needs this many bytes of the account. */
export const POOL_MINTS_BYTES = PLACES.POOL.layout.quoteMint + 32;

/** The mints (base58) of a pool's coin and quote currency; undefined for any other account. */
export function decodePoolMints(
  account: Pick<Account, "owner" | "data"> | undefined,
): { mint: string; quoteMint: string } | undefined {
  if (!isPlace("POOL", account) || account.data.length < POOL_MINTS_BYTES) return undefined;
  return {
    mint: keyAt(account.data, BASE_MINT),
    quoteMint: keyAt(account.data, PLACES.POOL.layout.quoteMint),
  };
}

function isPlace<A extends Pick<Account, "owner" | "data">>(
  stage: Stage,
  account: A | undefined,
): account is A {
  const { program, layout } = PLACES[stage];
  return account?.owner === program && account.data.subarray(0, 8).equals(layout.discriminator);
}

/** Decodes a curve or pool; undefined for any other account. */
export function decodeFeeAccount(
  stage: Stage,
  account: Pick<Account, "owner" | "data" | "lamports" | "space"> | undefined,
  rent: Rent,
): FeeAccount | undefined {
  if (!isPlace(stage, account)) return undefined;
  const { layout } = PLACES[stage];
  const data = Buffer.alloc(layout.bytes);
  account.data.copy(data);
  if (account.data.length < layout.bytesWithFee) data.fill(0, layout.creatorFee);
  const quoteMint = keyAt(data, layout.quoteMint);
  const amounts = [layout.creatorFee, ...layout.otherAmounts].map((at) => data.readBigUInt64LE(at));
  return {
    creator: keyAt(data, layout.creator),
    // A curve has the default key instead of a mint if the coin trades in SOL.
    quoteMint: quoteMint === DEFAULT_KEY ? WRAPPED_SOL_MINT : quoteMint,
    waiting: data.readBigUInt64LE(layout.creatorFee),
    isComplete: layout.isComplete !== undefined && data[layout.isComplete] !== 0,
    isCashback: data[layout.isCashback] !== 0,
    isHolderReward: data[layout.isHolderReward] !== 0,
    topUp: topUpOf(
      layout,
      account,
      rent,
      amounts.reduce((sum, amount) => sum + amount),
    ),
  };
}

/** A pool that is long enough is never topped up; a curve is, but by no more than its minimum. */
function topUpOf(
  { bytes, otherAmounts }: Layout,
  { lamports, data, space = data.length }: Pick<Account, "data" | "lamports" | "space">,
  rent: Rent,
  amount: bigint,
): Lamports {
  const isPool = otherAmounts.length === 0;
  if (isPool && space >= bytes) return toLamports(0);
  const minimum = rentMinimumOf(rent, Math.max(bytes, space));
  const missing = saturatingSubtract(toLamports(minimum + (isPool ? 0n : amount)), lamports);
  return missing < minimum ? missing : minimum;
}
