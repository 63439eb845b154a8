import type { CollectOutcome } from "../chain/collect/landed-outcome.ts";
import { formatSol, toLamports, type Lamports } from "../chain/lamports.ts";
import { ERROR_CODES, type ErrorCode } from "../contract/error-codes.ts";
import { builder } from "./builder.ts";
import { ErrorCodeType, listCodes } from "./error-code.ts";
import { MAX_COLLECTS, solField, withMetadata } from "./field-metadata.ts";

const EMPTY_VAULT = "NOTHING_TO_COLLECT" satisfies ErrorCode;

function collected(outcome: CollectOutcome): Lamports {
  return outcome.kind === "collected" ? outcome.collected : toLamports(0);
}

const CollectResultType = builder.objectRef<CollectOutcome>("CollectResult").implement({
  description: "The result of a collect. An empty vault is a result, not an error: `success` is false.",
  fields: (t) => ({
    success: t.boolean({
      description: "Whether a transaction moved fees to the address.",
      resolve: ({ kind }) => kind === "collected",
    }),
    collected: t.string({
      ...solField('The amount that the transaction moved; "0.0000" on an empty vault.'),
      resolve: (outcome) => formatSol(collected(outcome)),
    }),
    collectedLamports: t.field({
      type: "Lamports",
      description: "The exact `collected`.",
      resolve: collected,
    }),
    newBalance: t.string({
      nullable: true,
      ...solField("The balance of the address right after the transaction. Null on an empty vault."),
      resolve: (outcome) => (outcome.kind === "collected" ? formatSol(outcome.newBalance) : null),
    }),
    newBalanceLamports: t.field({
      type: "Lamports",
      nullable: true,
      description: "The exact `newBalance`. Null on an empty vault.",
      resolve: (outcome) => (outcome.kind === "collected" ? outcome.newBalance : null),
    }),
    txSignature: t.string({
      nullable: true,
      description: "The signature of the transaction, in base58. Null on an empty vault.",
      resolve: (outcome) => (outcome.kind === "collected" ? outcome.signature : null),
    }),
    error: t.field({
      type: ErrorCodeType,
      nullable: true,
      description: "NOTHING_TO_COLLECT on an empty vault. Null on success.",
      resolve: ({ kind }) => (kind === "nothing" ? EMPTY_VAULT : null),
    }),
    message: t.string({
      nullable: true,
      description: "Explains `error` to a person. Null on success.",
      resolve: ({ kind }) => (kind === "nothing" ? ERROR_CODES[EMPTY_VAULT].message : null),
    }),
  }),
});

const COLLECT_CODES = listCodes("collect", ["NOTHING_TO_COLLECT", "RATE_LIMITED"]);

builder.mutationFields((t) => ({
  collect: t.field({
    type: CollectResultType,
    nullable: true,
    ...withMetadata({ cost: { collects: 1, requests: 1 } }),
    description: `Moves an account's fees from its vault to its address. Anyone may call it for any account; the service pays the transaction fee. Resolves when the transaction is confirmed. Fails with ${COLLECT_CODES} in \`extensions.code\`. Each \`collect\` costs one request; at most ${MAX_COLLECTS} per operation.`,
    args: {
      socialId: t.arg.string({ required: true, description: "The wallet's `socialId`, not its handle." }),
    },
    resolve: (_root, { socialId }, { useCases, scope }) => useCases.collectFees(socialId, scope),
  }),
}));
