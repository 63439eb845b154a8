import { formatSol, type Lamports } from "../chain/lamports.ts";
import type { Balance } from "../chain/balances.ts";
import { builder } from "./builder.ts";
import { solField } from "./field-metadata.ts";

/** The fee of a withdrawal in the web application, in percent. Source: section 1 of the specification. */
const WITHDRAWAL_FEE_PERCENT = 2n;

const total = ({ vault, pda }: Balance) => (vault + pda) as Lamports;

/** What is left of the total after the withdrawal fee, which is rounded up: no promise of more than there is. */
function withdrawable(balance: Balance): Lamports {
  return ((total(balance) * (100n - WITHDRAWAL_FEE_PERCENT)) / 100n) as Lamports;
}

export const BalanceType = builder.objectRef<Balance>("Balance").implement({
  description: "What an account has and what waits for it, read from the chain when asked.",
  fields: (t) => ({
    vault: t.string({
      ...solField("What a collect would move now: the fees that wait in the launch platform's vault."),
      resolve: ({ vault }) => formatSol(vault),
    }),
    pda: t.string({
      ...solField("What the account's address holds: fees collected and not yet withdrawn."),
      resolve: ({ pda }) => formatSol(pda),
    }),
    total: t.string({
      ...solField("The sum of both, added exactly and cut last."),
      resolve: (balance) => formatSol(total(balance)),
    }),
    withdrawable: t.string({
      ...solField(
        "What the owner would receive for the total, everything collected and then withdrawn: the total less the withdrawal fee of 2%.",
      ),
      resolve: (balance) => formatSol(withdrawable(balance)),
    }),
    vaultLamports: t.field({
      type: "Lamports",
      description: "`vault`, exactly.",
      resolve: ({ vault }) => vault,
    }),
    pdaLamports: t.field({ type: "Lamports", description: "`pda`, exactly.", resolve: ({ pda }) => pda }),
    totalLamports: t.field({ type: "Lamports", description: "`total`, exactly.", resolve: total }),
    withdrawableLamports: t.field({
      type: "Lamports",
      description: "`withdrawable`, exactly; the fee is rounded up.",
      resolve: withdrawable,
    }),
  }),
});
