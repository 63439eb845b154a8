import type { CollectOutcome } from "../chain/collect/in-flight-collect.ts";
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
  description: "What a collect came to. An empty vault is an answer, not an error: `success` is false.",
  fields: (t) => ({
    success: t.boolean({
      description: "Whether a transaction has moved fees to the address.",
      resolve: ({ kind }) => kind === "collected",
    }),
    collected: t.string({
      ...solField('What the transaction moved; "0.0000" on an empty vault.'),
      resolve: (outcome) => formatSol(collected(outcome)),
    }),
    collectedLamports: t.field({
      type: "Lamports",
      description: "`collected`, exactly.",
      resolve: collected,
    }),
    newBalance: t.string({
      nullable: true,
      ...solField("What the address held right after the transaction. There is none on an empty vault."),
      resolve: (outcome) => (outcome.kind === "collected" ? formatSol(outcome.newBalance) : null),
    }),
    newBalanceLamports: t.field({
      type: "Lamports",
      nullable: true,
      description: "`newBalance`, exactly.",
      resolve: (outcome) => (outcome.kind === "collected" ? outcome.newBalance : null),
    }),
    txSignature: t.string({
      nullable: true,
      description:
        "The signature of the transaction that moved the fees, in base58. There is none on an empty vault.",
      resolve: (outcome) => (outcome.kind === "collected" ? outcome.signature : null),
    }),
    error: t.field({
      type: ErrorCodeType,
      nullable: true,
      description: "NOTHING_TO_COLLECT on an empty vault. There is none on success.",
      resolve: ({ kind }) => (kind === "nothing" ? EMPTY_VAULT : null),
    }),
    message: t.string({
      nullable: true,
      description: "Human-readable text to `error`.",
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
    description: `Moves the fees that wait in an account's vault to its address. Anyone may call it for anyone; the service pays for the transaction. Answers when the transaction is confirmed. Fails with ${COLLECT_CODES} in \`extensions.code\`. Each \`collect\` of an operation costs one request; it may have at most ${MAX_COLLECTS}.`,
    args: {
      socialId: t.arg.string({ required: true, description: "The `socialId` of a wallet, not its handle." }),
    },
    resolve: (_root, { socialId }, { useCases, scope }) => useCases.collectFees(socialId, scope),
  }),
}));
