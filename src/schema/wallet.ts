import { SOCIAL_ID_EXPECTED, SOCIAL_ID_PATTERN } from "../contract/social-id.ts";
import type { Context } from "../resolvers/context.ts";
import { balanceOf, handleOf, type Wallet } from "../resolvers/wallet.ts";
import { BalanceType } from "./balance.ts";
import { builder } from "./builder.ts";
import { listCodes } from "./error-code.ts";
import { MAX_WALLETS, withMetadata } from "./field-metadata.ts";

const WalletType = builder.objectRef<Wallet>("Wallet").implement({
  description: "The wallet that the service keeps for a social-network account.",
  fields: (t) => ({
    handle: t.string({
      nullable: true,
      ...withMetadata({ isNullOnlyOnError: true }),
      description: "The account's handle in the network's own spelling.",
      resolve: (wallet, _args, { scope }) => handleOf(wallet, scope),
    }),
    socialId: t.exposeString("socialId", {
      ...withMetadata({ pattern: SOCIAL_ID_PATTERN }),
      description: "The account's numeric id as decimal digits. It never changes: keep it for `collect`.",
    }),
    address: t.string({
      resolve: ({ addresses }) => addresses.address,
      description: "The address to name as the creator of a token on the launch platform, in base58.",
    }),
    balance: t.field({
      type: BalanceType,
      nullable: true,
      ...withMetadata({ isNullOnlyOnError: true }),
      description: "What the account has and what waits for it, read from the chain when asked for.",
      resolve: (wallet, _args, { scope }) => balanceOf(wallet, scope),
    }),
  }),
});

const HANDLE =
  "A handle without the @, in whatever case: 1-15 alphanumeric characters, and underscores where the operator allows them.";
const LOOKUP_CODES = listCodes("lookup", ["HANDLE_REQUIRED", "RATE_LIMITED"]);

builder.queryFields((t) => ({
  wallet: t.field({
    type: WalletType,
    nullable: true,
    ...withMetadata({ cost: { wallets: 1 } }),
    description: `Looks up the wallet of a handle. Fails with ${LOOKUP_CODES} in \`extensions.code\`. Ask for many at once with aliases or \`wallets\`, at most ${MAX_WALLETS} in one operation: they share their reads, and cost one request.`,
    args: { handle: t.arg.string({ required: true, description: HANDLE }) },
    resolve: (_root, { handle }, { useCases, scope }) => useCases.lookUpWallet(handle, scope),
  }),
  walletById: t.field({
    type: WalletType,
    nullable: true,
    ...withMetadata({ cost: { wallets: 1 } }),
    description: `The wallet of an account's id, without asking the network whether the account exists. Fails with INVALID_SOCIAL_ID. Its \`handle\` is one read of the network and fails with the codes of \`wallet\`, its \`balance\` fails with LOOKUP_FAILED. At most ${MAX_WALLETS} wallets in one operation.`,
    args: {
      socialId: t.arg.string({
        required: true,
        description: `${SOCIAL_ID_EXPECTED}.`,
      }),
    },
    resolve: (_root, { socialId }, { useCases }) => useCases.walletById(socialId),
  }),
  wallets: t.field({
    type: [WalletType],
    nullable: { list: false, items: true },
    ...withMetadata({ cost: { wallets: 1, perItemOf: "handles" } }),
    description: `Looks up the wallets of many handles, in their order. One that fails is null, with its error at its place; the others still answer. At most ${MAX_WALLETS} wallets in one operation, in all its lists and fields together.`,
    args: { handles: t.arg.stringList({ required: true, description: HANDLE }) },
    resolve: (_root, { handles }, context) => handles.map((handle) => findWallet(handle, context)),
  }),
}));

/**
 * Returns an error instead of throwing it. Both are errors to graphql-jit, but an item that rejects after a
 * later one has resolved makes its list longer.
 */
async function findWallet(handle: string, { useCases, scope }: Context): Promise<Wallet> {
  try {
    return await useCases.lookUpWallet(handle, scope);
  } catch (error) {
    return error as Error & Wallet;
  }
}
