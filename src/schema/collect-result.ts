import { MAX_LISTED, type LastCollect } from "../chain/collect/claims.ts";
import {
  formatExactSol,
  formatSol,
  toLamports,
  type Lamports,
} from "../chain/primitives/lamports.ts";
import { UNCOLLECTABLE } from "../chain/launchpad/coin-fees.ts";
import { LEFT, type LeftFees } from "../chain/units/units.ts";
import { ERROR_CODES, type ErrorCode } from "../contract/error-codes.ts";
import { NAME_COINS } from "../contract/mint.ts";
import type { CollectResult } from "../resolvers/use-cases.ts";
import { amountFields, builder, enumValues, inSol, type InputFields } from "./builder.ts";
import { ErrorCodeType, listCodes } from "./error-code.ts";
import { MAX_COLLECTS, MAX_LISTED_COLLECTS } from "./field-costs.ts";
import { MINTS, WalletType } from "./wallet.ts";

const NOTHING = "NOTHING_TO_COLLECT" satisfies ErrorCode;

/** Adds up what was left for this reason. */
function sumOf(left: readonly LeftFees[], reason: LeftFees["reason"]): Lamports {
  const fees = left.filter((each) => each.reason === reason);
  return toLamports(fees.reduce((sum, { amount = 0n }) => sum + amount, 0n));
}

function reasonOf({ belowMinimum, missing, left }: CollectResult): string {
  if (belowMinimum !== undefined)
    return `Only ${formatExactSol(belowMinimum)} SOL can be collected, less than \`minimum\`. Try again after more trading.`;
  if (missing)
    return `The address is empty and cannot receive less than its rent-exempt minimum: ${missing} lamports are missing. Try again after more trading.`;
  const waiting = sumOf(left, "BELOW_MINIMUM");
  if (waiting > 0n)
    return `Only ${formatExactSol(waiting)} SOL wait, too little to be worth a transaction. Try again after more trading.`;
  return ERROR_CODES[NOTHING].message;
}

function explain(result: CollectResult): string {
  const reason = reasonOf(result);
  return result.named.length > 0 ? reason : `${reason} ${NAME_COINS}`;
}

const COLLECTED =
  "The account's part of the transaction, which may have collected for other accounts too";
/** How to add up `collected`: several results can report one part. */
const COUNT_ONCE =
  "Count by `socialId` and `txSignature`: of several results with the same two, only the largest `collected` counts.";

const LastCollectType = builder.objectRef<LastCollect>("LastCollect").implement({
  description: "The last transaction of this service that moved fees of an account.",
  fields: (t) => ({
    ...amountFields(t, "collected", `${COLLECTED}.`, (last) => last.collected),
    ...amountFields(
      t,
      "newBalance",
      "The lamports at the account's address that its owner could withdraw, right after the transaction.",
      ({ newBalance }) => newBalance,
    ),
    txSignature: t.exposeString("signature", {
      description: "The transaction's signature, in base58.",
    }),
    at: t.string({
      description: "When its block was produced: ISO 8601, in UTC.",
      resolve: (last) => last.at.toISOString(),
    }),
  }),
});

const LeftReasonType = builder.enumType("LeftReason", {
  description: "Why a collect left fees behind: a reason of its own, or the coin's.",
  values: enumValues({ ...LEFT, ...UNCOLLECTABLE }),
});

const IN_SOL_ONLY = "Null if there is no such coin, or it trades in another currency.";

const LeftFeesType = builder.objectRef<LeftFees>("LeftFees").implement({
  description: "Fees that a collect saw and left behind.",
  fields: (t) => ({
    mint: t.exposeString("mint", {
      nullable: true,
      description: "The coin's mint, in base58. Null for the account's vaults.",
    }),
    amount: t.string({
      nullable: true,
      description: `${inSol("What waits there; of a coin whose fees are shared, the account's share.")} ${IN_SOL_ONLY}`,
      resolve: ({ amount }) => (amount === undefined ? null : formatSol(amount)),
    }),
    lamports: t.expose("amount", {
      type: "Lamports",
      nullable: true,
      description: `The exact \`amount\`. ${IN_SOL_ONLY}`,
    }),
    reason: t.expose("reason", { type: LeftReasonType, description: "Why it was left." }),
  }),
});

const NULL_IF_NOTHING = "Null if there was nothing to collect.";
const NULL_ON_SUCCESS = "Null on success.";

const CollectResultType = builder.objectRef<CollectResult>("CollectResult").implement({
  description:
    "The result of a collect. Nothing to collect (the vault is empty or holds too little) is a result, not an error: `success` is false.",
  fields: (t) => ({
    success: t.boolean({
      description: "Whether a transaction moved fees to the address.",
      resolve: ({ kind }) => kind === "collected",
    }),
    ...amountFields(
      t,
      "collected",
      `${COLLECTED}; "0.0000" if there was nothing to collect, or if an earlier entry of \`collectMany\` has the part. ${COUNT_ONCE}`,
      ({ collected = toLamports(0) }) => collected,
    ),
    newBalance: t.string({
      nullable: true,
      description: `${inSol("The lamports at the account's address that its owner can withdraw, right after the transaction.")} ${NULL_IF_NOTHING}`,
      resolve: ({ newBalance }) => (newBalance === undefined ? null : formatSol(newBalance)),
    }),
    newBalanceLamports: t.expose("newBalance", {
      type: "Lamports",
      nullable: true,
      description: `The exact \`newBalance\`. ${NULL_IF_NOTHING}`,
    }),
    txSignature: t.exposeString("signature", {
      nullable: true,
      description: `The signature of the transaction, in base58. ${NULL_IF_NOTHING}`,
    }),
    ...amountFields(
      t,
      "remaining",
      "What the request saw besides, on the coins named in `mints` and in the vaults: another collect moves it.",
      ({ kind, left }) => (kind === "collected" ? sumOf(left, "NO_ROOM") : toLamports(0)),
    ),
    error: t.field({
      type: ErrorCodeType,
      nullable: true,
      description: `NOTHING_TO_COLLECT. ${NULL_ON_SUCCESS}`,
      resolve: ({ kind }) => (kind === "nothing" ? NOTHING : null),
    }),
    message: t.string({
      nullable: true,
      description: `Explains \`error\` to a person. ${NULL_ON_SUCCESS}`,
      resolve: (result) => (result.kind === "nothing" ? explain(result) : null),
    }),
    lastCollect: t.field({
      type: LastCollectType,
      nullable: true,
      description: `If there was nothing to collect: what this service collected for the account within the last hour, so that a caller who lost a response can find its result. It is not of this request. ${COUNT_ONCE} Otherwise null.`,
      resolve: ({ kind, lastCollects }) => (kind === "nothing" ? lastCollects[0] : null),
    }),
    left: t.expose("left", {
      type: [LeftFeesType],
      description:
        "What this request's own read saw and left behind, and why: in the vaults, and on the coins named in `mints`. Empty if the request could read nothing.",
    }),
    lastCollects: t.expose("lastCollects", {
      type: [LastCollectType],
      description: `The account's newest ${MAX_LISTED} other collects of the last hour, the newest first, each transaction once, so that a caller who lost responses can find their results. ${COUNT_ONCE}`,
    }),
    wallet: t.expose("wallet", {
      type: WalletType,
      nullable: true,
      description:
        "The account's wallet. Select its `id` and `balance` to update a client's cache: the balance is read after the collect.",
    }),
  }),
});

const SOCIAL_ID = "The wallet's `socialId`, not its handle.";
const COLLECTED_MINTS = `${MINTS} One transaction is made: of the account's vaults with as many of its own coins as fit, the largest first, or of one coin whose fees are shared. \`remaining\` is what still waits.`;

const MINIMUM =
  'The least that the collect is to move for the account: SOL with at most nine digits after the point, such as "0.5"; otherwise INVALID_MINIMUM. If it would move less, there is nothing to collect: no transaction is sent, and `message` says what waits. A collect of the same account that is in flight is joined, whatever it moves.';

const ADDRESS =
  "The address that you expect the account to have, as a lookup returned it. If it has another one: INVALID_SOCIAL_ID, and nothing happens.";

const entryFields = (t: InputFields) => ({
  socialId: t.string({ required: true, description: SOCIAL_ID }),
  mints: t.stringList({ description: COLLECTED_MINTS }),
  minimum: t.string({ description: MINIMUM }),
  address: t.string({ description: ADDRESS }),
});

const CollectInput = builder.inputType("CollectInput", {
  description: "An account whose fees to collect.",
  fields: entryFields,
});

const COLLECT_CODES = listCodes("collect", ["NOTHING_TO_COLLECT", "RATE_LIMITED"]);

builder.mutationFields((t) => ({
  collect: t.field({
    type: CollectResultType,
    nullable: true,
    description: `Moves an account's fees from its vault, and those that wait on the coins named in \`mints\`, to its address. Anyone may call it for any account; the service pays the transaction fee. Resolves when the transaction is confirmed. Fails with ${COLLECT_CODES} in \`extensions.code\`. Each \`collect\` costs one request; at most ${MAX_COLLECTS} per operation.`,
    args: builder.args(entryFields),
    resolve: (_root, entry, { useCases, scope }) => useCases.collectFees(entry, scope),
  }),
  collectMany: t.field({
    type: [CollectResultType],
    nullable: { list: false, items: true },
    description: `Collects the fees of many accounts at the same time, as \`collect\` does. The results are in the order of the entries. Many accounts can share one transaction: they have the same \`txSignature\`, and each its own part as \`collected\`. Of several entries of one account that one transaction serves, only the first has the amounts, so all \`collected\` of one response may be added up. An account that fails is null, with an error at its path and the id in \`extensions.socialId\`; the others are still collected. Each entry costs one request, so a list longer than the rate limit is a BAD_REQUEST; at most ${MAX_LISTED_COLLECTS} entries per operation.`,
    args: {
      collects: t.arg({
        type: [CollectInput],
        required: true,
        description: "The accounts, with their coins.",
      }),
    },
    resolve: (_root, { collects }, { useCases, scope }) => useCases.collectMany(collects, scope),
  }),
}));
