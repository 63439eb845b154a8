import { balanceOf, handleOf, lookUpWallet, walletOfId, type Wallet } from "../resolvers/look-up-wallet.ts";
import { BalanceType } from "./balance.ts";
import type { RequestContext } from "../resolvers/context.ts";
import { SOCIAL_ID_EXPECTED, SOCIAL_ID_PATTERN } from "../social/account.ts";
import { builder } from "./builder.ts";
import { facts } from "./field-metadata.ts";
import { MAX_WALLETS } from "../graphql/limits/operation-limits.ts";

const WalletType = builder.objectRef<Wallet>("Wallet").implement({
  description: "The wallet that the service keeps for a social-network account.",
  fields: (t) => ({
    handle: t.string({
      nullable: true,
      ...facts({ isNullOnlyOnError: true }),
      description: "The account's handle in the network's own spelling.",
      resolve: (wallet, _args, context) => handleOf(wallet, context),
    }),
    socialId: t.exposeString("socialId", {
      ...facts({ pattern: SOCIAL_ID_PATTERN }),
      description: "The account's numeric id as decimal digits. It never changes: keep it for `collect`.",
    }),
    address: t.string({
      resolve: ({ addresses }) => addresses.address,
      description: "The address to name as the creator of a token on the launch platform, in base58.",
    }),
    balance: t.field({
      type: BalanceType,
      nullable: true,
      ...facts({ isNullOnlyOnError: true }),
      description: "What the account has and what waits for it, read from the chain when asked for.",
      resolve: (wallet, _args, context) => balanceOf(wallet, context),
    }),
  }),
});

const HANDLE =
  "A handle without the @, in whatever case: 1-15 alphanumeric characters, and underscores where the operator allows them.";

builder.queryFields((t) => ({
  wallet: t.field({
    type: WalletType,
    nullable: true,
    description: `Looks up the wallet of a handle. Fails with INVALID_HANDLE, SOCIAL_NOT_FOUND, SOCIAL_RATE_LIMITED, SOCIAL_API_UNAVAILABLE, SERVICE_BUSY or LOOKUP_FAILED in \`extensions.code\`. Ask for many at once with aliases or \`wallets\`, at most ${MAX_WALLETS} in one operation: they share their reads, and cost one request.`,
    args: { handle: t.arg.string({ required: true, description: HANDLE }) },
    resolve: (_root, { handle }, context) => lookUpWallet(handle, context),
  }),
  walletById: t.field({
    type: WalletType,
    nullable: true,
    description: `The wallet of an account's id, without asking the network whether the account exists. Fails with INVALID_SOCIAL_ID. Its \`handle\` is one read of the network and fails with the codes of \`wallet\`, its \`balance\` fails with LOOKUP_FAILED. At most ${MAX_WALLETS} wallets in one operation.`,
    args: {
      socialId: t.arg.string({
        required: true,
        description: `${SOCIAL_ID_EXPECTED}.`,
      }),
    },
    resolve: (_root, { socialId }, context) => walletOfId(socialId, context),
  }),
  wallets: t.field({
    type: [WalletType],
    nullable: { list: false, items: true },
    description: `Looks up the wallets of many handles, in their order. One that fails is null, with its error at its place; the others still answer. At most ${MAX_WALLETS} wallets in one operation, in all its lists and fields together.`,
    args: { handles: t.arg.stringList({ required: true, description: HANDLE }) },
    resolve: (_root, { handles }, context) => handles.map((handle) => findWallet(handle, context)),
  }),
}));

/**
 * An error is given and not thrown: to graphql-jit both are errors, but an item that rejects after a later one
 * is known makes its list longer.
 */
async function findWallet(handle: string, context: RequestContext): Promise<Wallet> {
  try {
    return await lookUpWallet(handle, context);
  } catch (error) {
    return error as Error & Wallet;
  }
}
