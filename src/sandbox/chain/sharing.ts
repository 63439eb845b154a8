import { findAddress, toKeyBytes } from "../../chain/primitives/derive-address.ts";
import { LAUNCHPAD_FEES_PROGRAM_ID } from "../../chain/launchpad/program-ids.ts";
import type { Shareholder } from "../../chain/launchpad/sharing-config.ts";
import { setProgramAccount } from "./accounts.ts";
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
const IS_ACTIVE = 10;
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

/**
 * Creates or overwrites a coin's sharing config, without a transaction. Its admin is revoked, so no
 * transaction can change it.
 */
export function setSharingConfig(
  chain: Chain,
  mint: string,
  shareholders: readonly Shareholder[],
): void {
  const owner = LAUNCHPAD_FEES_PROGRAM_ID;
  const { address, bump } = findAddress(["sharing-config", toKeyBytes(mint)], owner);
  setProgramAccount(chain, { address, owner, bytes: BYTES }, [
    [0, DISCRIMINATOR],
    [BUMP, bump],
    [VERSION, LAYOUT_VERSION],
    [IS_ACTIVE, 1],
    [MINT, mint],
    [ADMIN, STRANGER],
    [IS_ADMIN_REVOKED, 1],
    [COUNT, shareholders.length],
    ...shareholders.flatMap((shareholder, i) => {
      const { bps } = shareholder;
      const at = SHAREHOLDERS + i * SHAREHOLDER_BYTES;
      return [
        [at, shareholder.address],
        [at + KEY_BYTES, Buffer.of(bps & 0xff, bps >> 8)],
      ] as const;
    }),
  ]);
}
