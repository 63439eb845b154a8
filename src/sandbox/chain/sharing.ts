import { PublicKey } from "@solana/web3.js";
import type { CoinAddresses } from "../../chain/launchpad/coin-addresses.ts";
import { LAUNCHPAD_FEES_PROGRAM_ID } from "../../chain/launchpad/program-ids.ts";
import type { SharingConfig } from "../../chain/launchpad/sharing-config.ts";
import type { Chain } from "./chain.ts";

/** An address in base58 that belongs to no account of the sandbox. */
export const STRANGER = "H751joPCRZTquPmgxae7Yysh8qHzmwjvGAwL4RqB8nJb";

/**
 * Offsets in the account SharingConfig. Source:
 * https://github.com/pump-fun/pump-public-docs/tree/main/idl.
 */
const DISCRIMINATOR = Buffer.from("d84a0900388c5d4b", "hex");
const BUMP = 8;
const VERSION = 9;
const STATUS = 10;
const MINT = 11;
const ADMIN = 43;
const IS_ADMIN_REVOKED = 75;
const COUNT = 76;
const SHAREHOLDERS = 80;
const KEY_BYTES = 32;
const SHAREHOLDER_BYTES = KEY_BYTES + 2;
const BYTES = 1024;

/** The version that the platform writes. */
const LAYOUT_VERSION = 2;
const ACTIVE = 1;
const PAUSED = 0;

/**
 * Changes a coin's sharing config, without a transaction. If the coin has none, creates an active
 * config without shareholders.
 */
export function setSharingConfig(
  chain: Chain,
  { mint, sharingConfig }: CoinAddresses,
  { shareholders, isPaused }: Partial<SharingConfig>,
): void {
  const data = Buffer.from(chain.account(sharingConfig.address)?.data ?? newConfig(mint));
  if (isPaused !== undefined) data.writeUInt8(isPaused ? PAUSED : ACTIVE, STATUS);
  if (shareholders) {
    data.fill(0, SHAREHOLDERS).writeUInt32LE(shareholders.length, COUNT);
    for (const [i, { address, bps }] of shareholders.entries()) {
      const at = SHAREHOLDERS + i * SHAREHOLDER_BYTES;
      data.set(new PublicKey(address).toBytes(), at);
      data.writeUInt16LE(bps, at + KEY_BYTES);
    }
  }
  const lamports = chain.rentExemptMinimum(BYTES);
  chain.setAccount(sharingConfig.address, { lamports, owner: LAUNCHPAD_FEES_PROGRAM_ID, data });
}

/** A config without shareholders. Its admin is revoked, so no transaction can change it. */
function newConfig(mint: string): Buffer {
  const seeds = [Buffer.from("sharing-config"), new PublicKey(mint).toBuffer()];
  const [, bump] = PublicKey.findProgramAddressSync(
    seeds,
    new PublicKey(LAUNCHPAD_FEES_PROGRAM_ID),
  );
  const data = Buffer.alloc(BYTES);
  data.set(DISCRIMINATOR);
  data.writeUInt8(bump, BUMP);
  data.writeUInt8(LAYOUT_VERSION, VERSION);
  data.writeUInt8(ACTIVE, STATUS);
  data.set(new PublicKey(mint).toBytes(), MINT);
  data.set(new PublicKey(STRANGER).toBytes(), ADMIN);
  data.writeUInt8(1, IS_ADMIN_REVOKED);
  return data;
}
