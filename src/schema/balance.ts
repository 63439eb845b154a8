import type { Balance } from "../chain/balances/balances.ts";
import { toLamports, type Lamports } from "../chain/primitives/lamports.ts";
import { amountFields, builder } from "./builder.ts";

/**
 * The withdrawal fee of the web application, in percent. Source: section 1 of the specification.
 */
const WITHDRAWAL_FEE_PERCENT = 2n;

const total = ({ vault, pda }: Balance) => toLamports(vault + pda);

/**
 * The total after the withdrawal fee. Rounds the fee up, so that the owner receives at least this.
 */
function withdrawable(balance: Balance): Lamports {
  return toLamports((total(balance) * (100n - WITHDRAWAL_FEE_PERCENT)) / 100n);
}

export const BalanceType = builder.objectRef<Balance>("Balance").implement({
  description: "An account's balance, read from the chain for this request.",
  fields: (t) => ({
    ...amountFields(
      t,
      "vault",
      "The fees that can be collected: those in the launch platform's vaults, and those that wait on the named coins. Collects that name the same coins move all of them, or nothing if they are below the operator's minimum, or below the rent-exempt minimum of an empty address.",
      ({ vault }) => vault,
    ),
    ...amountFields(
      t,
      "pda",
      "The lamports at the account's address that its owner can withdraw.",
      ({ pda }) => pda,
    ),
    ...amountFields(t, "total", "`vault` plus `pda`, added before they are truncated.", total),
    ...amountFields(
      t,
      "withdrawable",
      "What the owner would receive after collecting everything and withdrawing it: `total` minus the 2% withdrawal fee, which is rounded up.",
      withdrawable,
    ),
  }),
});
