import { startEvent, type WalletEvent } from "../resolvers/watch-wallet.ts";
import { builder } from "./builder.ts";
import { withMetadata } from "./field-metadata.ts";
import { HANDLE, MINTS, SOCIAL_ID, WalletType } from "./wallet.ts";

const EVENTS =
  "An event at once, then one each time an amount of `balance` or `coins` changes. There are none during an outage of the chain, and one with the current balance after it. `history` cannot be selected.";

builder.subscriptionFields((t) => ({
  wallet: t.field({
    type: WalletType,
    nullable: true,
    ...withMetadata({ cost: { wallets: 1, mintsIn: "mints" } }),
    description: `Watches the wallet of a handle. ${EVENTS} Fails with the codes of the query \`wallet\`.`,
    args: {
      handle: t.arg.string({ required: true, description: HANDLE }),
      mints: t.arg.stringList({ description: MINTS }),
    },
    subscribe: (_root, { handle, mints }, { useCases, scope }) =>
      useCases.watchWallet(() => useCases.lookUpWallet(handle, scope, mints), scope),
    resolve: (event: WalletEvent, _args, { scope }) => startEvent(event, scope),
  }),
  walletById: t.field({
    type: WalletType,
    nullable: true,
    ...withMetadata({ cost: { wallets: 1, mintsIn: "mints" } }),
    description: `Watches the wallet of an account's id. ${EVENTS} Fails with INVALID_SOCIAL_ID or INVALID_MINT.`,
    args: {
      socialId: t.arg.string({ required: true, description: SOCIAL_ID }),
      mints: t.arg.stringList({ description: MINTS }),
    },
    subscribe: (_root, { socialId, mints }, { useCases, scope }) =>
      useCases.watchWallet(() => useCases.walletById(socialId, mints), scope),
    resolve: (event: WalletEvent, _args, { scope }) => startEvent(event, scope),
  }),
}));
