import { findAddress, toKeyBytes } from "../../chain/primitives/derive-address.ts";
import { LAUNCHPAD_FEES_PROGRAM_ID } from "../../chain/launchpad/program-ids.ts";
import type { Shareholder } from "../../chain/launchpad/sharing-config.ts";
import { setProgramAccount } from "./accounts.ts";
import type { Chain } from "./chain.ts";

/** An address in base58 that belongs to no account of the sandbox. */
export const STRANGER = "H751joPCRZTquPmgxae7Yysh8qHzmwjvGAwL4RqB8nJb";

/**
 * The account SharingConfig. Source:
 * https://github.com/pump-fun/pump-public-docs/tree/main/idl.
 */
const DISCRIMINATOR = Buffer.from("d84a0900388c5d4b", "hex");
const BYTES = 1024;
/** The version that the platform writes. */
const VERSION = 2;
const IS_ACTIVE = 1;
const IS_ADMIN_REVOKED = 1;

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
  const fields = Buffer.concat([
    DISCRIMINATOR,
    Buffer.of(bump, VERSION, IS_ACTIVE),
    toKeyBytes(mint),
    toKeyBytes(STRANGER),
    // The count is a u32, and a share a u16.
    Buffer.of(IS_ADMIN_REVOKED, shareholders.length, 0, 0, 0),
    ...shareholders.flatMap((shareholder) => {
      const { bps } = shareholder;
      return [toKeyBytes(shareholder.address), Buffer.of(bps & 0xff, bps >> 8)];
    }),
  ]);
  setProgramAccount(chain, { address, owner, bytes: BYTES }, [[0, fields]]);
}
