import { keyAt } from "../primitives/derive-address.ts";
import type { Account } from "../rpc/rpc-results.ts";
import { LAUNCHPAD_FEES_PROGRAM_ID } from "./program-ids.ts";

/** An address (base58) that shares a coin's creator fees, and its share in ten-thousandths. */
export interface Shareholder {
  readonly address: string;
  readonly bps: number;
}

/** Who shares a coin's creator fees. The launch platform can change a sharing config. */
export interface SharingConfig {
  /** Whether distributions are paused. */
  readonly isPaused: boolean;
  /** In the sharing config's order. */
  readonly shareholders: readonly Shareholder[];
}

/** 100%, in ten-thousandths. */
export const ALL_BPS = 10_000;

const MAX_SHAREHOLDERS = 10;

// The account `SharingConfig` of the launch platform's fees program. Offsets include the
// discriminator. Source: https://github.com/pump-fun/pump-public-docs/tree/main/idl and
// docs/CREATOR_FEE_SHARING.md.
const DISCRIMINATOR = Buffer.from("d84a0900388c5d4b", "hex");
const STATUS = 10;
const MINT = 11;
const COUNT = 76;
const SHAREHOLDERS = 80;
const SHAREHOLDER_BYTES = 34;

const ACTIVE = 1;

/** {@link decodeSharingConfig} needs this many bytes of the account. */
export const SHARING_CONFIG_BYTES = SHAREHOLDERS + MAX_SHAREHOLDERS * SHAREHOLDER_BYTES;

/** Decodes the sharing config of the coin with this mint; undefined for any other account. */
export function decodeSharingConfig(
  account: Pick<Account, "owner" | "data"> | undefined,
  mint: string,
): SharingConfig | undefined {
  if (account?.owner !== LAUNCHPAD_FEES_PROGRAM_ID) return undefined;
  const { data } = account;
  if (data.length < SHAREHOLDERS || !data.subarray(0, DISCRIMINATOR.length).equals(DISCRIMINATOR))
    return undefined;
  const count = data.readUInt32LE(COUNT);
  const isWhole =
    count <= MAX_SHAREHOLDERS && data.length >= SHAREHOLDERS + count * SHAREHOLDER_BYTES;
  if (!isWhole || keyAt(data, MINT) !== mint) return undefined;
  return {
    isPaused: data[STATUS] !== ACTIVE,
    shareholders: Array.from({ length: count }, (_, i) => {
      const offset = SHAREHOLDERS + i * SHAREHOLDER_BYTES;
      return { address: keyAt(data, offset), bps: data.readUInt16LE(offset + 32) };
    }),
  };
}
