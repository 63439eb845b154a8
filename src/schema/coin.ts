import { formatSol, toLamports } from "../chain/primitives/lamports.ts";
import { UNCOLLECTABLE, type CoinFees } from "../chain/launchpad/coin-fees.ts";
import { WRAPPED_SOL_MINT } from "../chain/launchpad/token-accounts.ts";
import { builder, enumValues, inSol } from "./builder.ts";

const StageType = builder.enumType("CoinStage", {
  description: "Where fees wait.",
  values: enumValues({
    CURVE: "On the bonding curve.",
    POOL: "In the pool on the AMM.",
    SHARED: "In the vaults of the coin's sharing config.",
  }),
});

const ReasonType = builder.enumType("UncollectableReason", {
  description: "Why a collect does not move the fees that wait on a coin.",
  values: enumValues(UNCOLLECTABLE),
});

export const CoinType = builder.objectRef<CoinFees>("Coin").implement({
  description:
    "The fees that wait for the account in one place of a coin, until a collect that names the coin, or anyone else, moves them. If the account shares the coin's fees, they are its share.",
  fields: (t) => ({
    mint: t.exposeString("mint", {
      description: "The coin's mint, in base58.",
    }),
    stage: t.expose("stage", {
      type: StageType,
      nullable: true,
      description:
        "The place. A coin whose fees wait in several has an entry for each. Null if there is no such coin.",
    }),
    waiting: t.string({
      nullable: true,
      description: inSol(
        "The waiting fees; null if the coin trades in another currency, or does not exist.",
      ),
      resolve: ({ amount, quoteMint }) =>
        amount === null || quoteMint !== WRAPPED_SOL_MINT ? null : formatSol(toLamports(amount)),
    }),
    amount: t.string({
      nullable: true,
      description:
        "The exact waiting fees in the smallest unit of `quoteMint`, as decimal digits: lamports for SOL. Null if there is no such coin, and for the pool of a coin that trades in another currency.",
      resolve: ({ amount }) => amount?.toString(),
    }),
    quoteMint: t.exposeString("quoteMint", {
      nullable: true,
      description: `The mint of the currency in which the coin trades; ${WRAPPED_SOL_MINT} is SOL. Null if there is no such coin.`,
    }),
    shareBps: t.exposeInt("shareBps", {
      description:
        "The account's share of the coin's creator fees, in ten-thousandths: 10000 for the only creator, 0 if it has none. A collect of a shared coin pays all who share it.",
    }),
    collectable: t.boolean({
      description:
        "Whether collects that name the coin move the fees. If so, `balance.vault` includes them.",
      resolve: ({ reason }) => reason === null,
    }),
    reason: t.expose("reason", {
      type: ReasonType,
      nullable: true,
      description: "Why collects do not move the fees; null if they do.",
    }),
  }),
});
