import { GraphQLError, valueFromASTUntyped, type GraphQLResolveInfo } from "graphql";
import { MIN_LOOKED_AT } from "../chain/history/history.ts";
import { MAX_MINTS, MAX_MINTS_PER_WALLET } from "../contract/mint.ts";
import { SOCIAL_ID_EXPECTED } from "../contract/social-id.ts";
import { resolveItem, type Context, type Mints, type Wallet } from "../resolvers/use-cases.ts";
import { BalanceType } from "./balance.ts";
import { builder } from "./builder.ts";
import { CoinType } from "./coin.ts";
import { DerivationType } from "./derivation.ts";
import { listCodes } from "./error-code.ts";
import {
  DEFAULT_TRANSFERS,
  LOOKED_AT_PER_REQUEST,
  MAX_MINTS_PER_OPERATION,
  MAX_TRANSFERS,
  MAX_FOLLOWED,
  MAX_WALLETS,
} from "./field-costs.ts";
import { ProfileType } from "./profile.ts";
import { fieldsOf } from "./selected-fields.ts";
import { TransferConnectionType } from "./transfer.ts";

export const MINTS = `The mints of coins whose waiting fees count, in base58. At most ${MAX_MINTS} here, ${MAX_MINTS_PER_WALLET} for one wallet and ${MAX_MINTS_PER_OPERATION} per operation; others are INVALID_MINT.`;

const NodeType = builder.interfaceRef<Wallet>("Node").implement({
  description:
    "An object that a client can read again by its id, as Relay requires. Only wallets are nodes.",
  fields: (t) => ({
    id: t.exposeID("socialId", {
      description: "Identifies the wallet in a client's cache: the same as `socialId`.",
    }),
  }),
  resolveType: () => "Wallet",
});

export const WalletType = builder.objectRef<Wallet>("Wallet").implement({
  description: "The wallet of a social-network account.",
  interfaces: [NodeType],
  fields: (t) => ({
    handle: t.string({
      nullable: true,
      description: "The account's handle, in the network's spelling.",
      resolve: (wallet, _args, { useCases, scope }) =>
        useCases.readAccount(wallet, scope).then(({ handle }) => handle),
    }),
    profile: t.field({
      type: ProfileType,
      nullable: true,
      description:
        "What the network shows of the account, from the same call as `handle`. Check it before you pay: other accounts may have similar handles.",
      resolve: (wallet, _args, { useCases, scope }) =>
        useCases.readAccount(wallet, scope).then(({ profile }) => profile),
    }),
    socialId: t.exposeString("socialId", {
      description:
        "The account's numeric id, as decimal digits. It never changes. `collect` needs it.",
    }),
    address: t.string({
      resolve: ({ addresses }) => addresses.address,
      description:
        "The address to set as the creator of a token on the launch platform, in base58.",
    }),
    derivation: t.field({
      type: DerivationType,
      description: "How `address` is derived, so that you can check it.",
      resolve: ({ addresses }) => addresses.derivation,
    }),
    balance: t.field({
      type: BalanceType,
      nullable: true,
      description: "The balance, read from the chain for this request.",
      args: { mints: t.arg.stringList({ description: MINTS }) },
      resolve: (wallet, { mints }, { useCases, scope }) =>
        useCases.readBalance(wallet, mints, scope),
    }),
    coins: t.field({
      type: [CoinType],
      nullable: true,
      description:
        "The fees that wait on these coins, read from the chain together with `balance`.",
      args: { mints: t.arg.stringList({ required: true, description: MINTS }) },
      resolve: (wallet, { mints }, { useCases, scope }) =>
        mints.length === 0
          ? []
          : useCases.readBalance(wallet, mints, scope).then(({ coins }) => coins),
    }),
    coinsSeen: t.stringList({
      nullable: true,
      description: `The mints of coins whose fees were swept or distributed, in the last ${MIN_LOOKED_AT} transactions of the account's creator vault and of its address, the last ones first. Name them in \`mints\` to see and collect what waits on them. A coin that was never swept is not found, nor one that was swept too long ago, nor a pool that was swept without a collect: nothing is remembered. Anyone can launch a coin for the account. Costs two more requests for each wallet. Fails with LOOKUP_FAILED or SERVICE_BUSY.`,
      resolve: (wallet, _args, { useCases, scope }) => useCases.readCoinsSeen(wallet, scope),
    }),
    history: t.field({
      type: TransferConnectionType,
      nullable: true,
      description: `What arrived at the address and what left it, newest first, read from the chain. Amounts below 0.0001 SOL that strangers sent are left out. A page looks at ${MIN_LOOKED_AT} transactions, or at \`first\` if that is more, so it may have fewer transfers, or none: go on while \`hasNextPage\` is true. Costs one more request for each wallet, and another for every ${LOOKED_AT_PER_REQUEST} transactions beyond ${MIN_LOOKED_AT}. At most ${MAX_TRANSFERS} transfers per operation. Fails with LOOKUP_FAILED or SERVICE_BUSY.`,
      args: {
        first: t.arg.int({
          defaultValue: DEFAULT_TRANSFERS,
          description: "The most transfers to return.",
        }),
        after: t.arg.string({ description: "The `endCursor` of the page before." }),
      },
      resolve: async (wallet, { first, after }, { useCases, scope }) => {
        const page = { first: first ?? DEFAULT_TRANSFERS, after: after ?? undefined };
        return { ...(await useCases.readHistory(wallet, page, scope)), after: page.after };
      },
    }),
  }),
});

const SOCIAL_ID = `${SOCIAL_ID_EXPECTED}.`;
const LOOKUP_CODES = listCodes("lookup", ["HANDLE_REQUIRED", "RATE_LIMITED", "INVALID_MINT"]);

const BY_HANDLE = builder.args((t) => ({
  handle: t.string({
    required: true,
    description:
      "A handle without the @, case-insensitive: 1-15 alphanumeric characters, and underscores if the operator allows them.",
  }),
}));
const BY_ID = builder.args((t) => ({
  socialId: t.string({ required: true, description: SOCIAL_ID }),
}));
const BY_IDS = builder.args((t) => ({
  socialIds: t.stringList({ required: true, description: `Ids: each ${SOCIAL_ID_EXPECTED}.` }),
}));

const ONE_WALLET = { type: WalletType, nullable: true as const };
const MANY_WALLETS = {
  type: [WalletType] as [typeof WalletType],
  nullable: { list: false, items: true } as const,
};

builder.queryFields((t) => ({
  wallet: t.field({
    ...ONE_WALLET,
    description: `Looks up the wallet of a handle. Fails with ${LOOKUP_CODES} in \`extensions.code\`. To look up many, use \`wallets\` or aliases: at most ${MAX_WALLETS} wallets per operation, at the cost of one request if they name no coins.`,
    args: BY_HANDLE,
    resolve: (_root, { handle }, { useCases, scope }) => useCases.lookUpWallet(handle, scope),
  }),
  walletById: t.field({
    ...ONE_WALLET,
    description: `The wallet of an account's id. Does not check that the account exists. Fails with INVALID_SOCIAL_ID. Its \`handle\` and \`profile\` are read from the network and can fail with the codes of \`wallet\`. At most ${MAX_WALLETS} wallets per operation.`,
    args: BY_ID,
    resolve: (_root, { socialId }, { useCases }) => useCases.walletById(socialId),
  }),
  node: t.field({
    ...ONE_WALLET,
    type: NodeType,
    description:
      "The wallet of an id, for clients that read objects again by their ids: the same as `walletById`.",
    args: { id: t.arg.id({ required: true, description: SOCIAL_ID }) },
    resolve: (_root, { id }, { useCases }) => useCases.walletById(id),
  }),
  wallets: t.field({
    ...MANY_WALLETS,
    description: `Looks up the wallets of many handles, in their order. A wallet that fails is null, with an error at its path and the handle in \`extensions.handle\`; the others still resolve. At most ${MAX_WALLETS} wallets per operation, lists and fields together.`,
    args: {
      handles: t.arg.stringList({
        required: true,
        description:
          "Handles without the @, case-insensitive: each 1-15 alphanumeric characters, and underscores if the operator allows them.",
      }),
    },
    resolve: (_root, { handles }, { useCases, scope }) =>
      handles.map((handle) =>
        resolveItem("handle", handle, () => useCases.lookUpWallet(handle, scope), scope),
      ),
  }),
  walletsById: t.field({
    ...MANY_WALLETS,
    description: `The wallets of many ids, in their order, as \`walletById\` returns them. One that fails is null, with an error at its path and the id in \`extensions.socialId\`. At most ${MAX_WALLETS} wallets per operation.`,
    args: BY_IDS,
    resolve: (_root, { socialIds }, context) =>
      socialIds.map((socialId) => resolveId(socialId, context)),
  }),
}));

const resolveId = (socialId: string, { useCases, scope }: Context) =>
  resolveItem("socialId", socialId, () => useCases.walletById(socialId), scope);

const NO_EVENTS =
  "There are none during an outage of the chain, and one with the current balance after it. `history` and `coinsSeen` cannot be selected.";
const EVENTS = `An event at once, then one each time an amount of \`balance\` or \`coins\` changes. ${NO_EVENTS}`;

const watch = (
  finds: readonly (() => Wallet | Promise<Wallet>)[],
  { useCases, scope }: Context,
  info: GraphQLResolveInfo,
) => useCases.watchWallets(finds, mintsOfFields(info), scope);

builder.subscriptionFields((t) => ({
  wallet: t.field({
    ...ONE_WALLET,
    description: `Watches the wallet of a handle. ${EVENTS} Fails with INVALID_MINT, or the codes of the query \`wallet\`.`,
    args: BY_HANDLE,
    subscribe: (_root, { handle }, context, info) =>
      watch([() => context.useCases.lookUpWallet(handle, context.scope)], context, info),
    resolve: (wallet) => wallet,
  }),
  walletById: t.field({
    ...ONE_WALLET,
    description: `Watches the wallet of an account's id. ${EVENTS} Fails with INVALID_SOCIAL_ID or INVALID_MINT.`,
    args: BY_ID,
    subscribe: (_root, { socialId }, context, info) =>
      watch([() => context.useCases.walletById(socialId)], context, info),
    resolve: (wallet) => wallet,
  }),
  walletsById: t.field({
    type: WalletType,
    description: `Watches the wallets of 1 to ${MAX_WALLETS} ids. Each event is one wallet: all of them at first, then each one when an amount of it changes. ${NO_EVENTS} Fails with INVALID_SOCIAL_ID or INVALID_MINT. An address may follow ${MAX_FOLLOWED} accounts in all its streams.`,
    args: BY_IDS,
    subscribe: (_root, { socialIds }, context, info) => {
      if (socialIds.length === 0) throw new GraphQLError("`socialIds` must have at least one id.");
      return watch(
        socialIds.map((socialId) => () => resolveId(socialId, context)),
        context,
        info,
      );
    },
    resolve: (wallet) => wallet,
  }),
}));

/** The mints that each selected field of a wallet names. */
function mintsOfFields({ fieldNodes, fragments, variableValues }: GraphQLResolveInfo): Mints[] {
  const sets = fieldNodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  const fields = fieldsOf(new Map(Object.entries(fragments)), sets);
  return fields.flatMap(({ arguments: all = [] }) =>
    all
      .filter(({ name }) => name.value === "mints")
      // GraphQL takes a text for a list of one.
      .map(({ value }) => [valueFromASTUntyped(value, variableValues) ?? []].flat() as string[]),
  );
}
