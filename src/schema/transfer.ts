import type { HistoryPage, TransferWithMints } from "../chain/history/history.ts";
import { formatSol } from "../chain/primitives/lamports.ts";
import { builder, enumValues, inSol } from "./builder.ts";

const TransferKindType = builder.enumType("TransferKind", {
  description: "What a transfer did.",
  values: enumValues({
    COLLECTED:
      "Fees arrived from the launch platform's vaults, the account's or those of a coin whose fees it shares, whoever collected them. Counts only what the collect itself moved.",
    RECEIVED: "Lamports arrived from elsewhere.",
    WITHDRAWN: "Lamports left the address.",
  }),
});

const TransferType = builder.objectRef<TransferWithMints>("Transfer").implement({
  description: "What one transaction added to a wallet's address, or took from it.",
  fields: (t) => ({
    kind: t.expose("kind", {
      type: TransferKindType,
      description: "Whether lamports arrived or left.",
    }),
    amount: t.string({
      description: inSol("The amount that arrived or left."),
      resolve: ({ lamports }) => formatSol(lamports),
    }),
    lamports: t.expose("lamports", { type: "Lamports", description: "The exact `amount`." }),
    signature: t.exposeString("signature", {
      description: "The transaction's signature, in base58.",
    }),
    at: t.string({
      nullable: true,
      description: "When its block was produced: ISO 8601, in UTC. Null if the chain does not say.",
      resolve: ({ at }) => at?.toISOString(),
    }),
    mints: t.exposeStringList("mints", {
      description:
        "The mints of the coins whose fees the transaction swept for the account, or distributed to it, in base58.",
    }),
  }),
});

/** A page of a history, and the cursor after which it begins. */
export interface TransferPage extends HistoryPage {
  readonly after: string | undefined;
}

const PageInfoType = builder.objectRef<TransferPage>("PageInfo").implement({
  description: "Where a page begins and ends, as Relay defines it.",
  fields: (t) => ({
    hasNextPage: t.exposeBoolean("hasNextPage", {
      description: "Whether there are older transactions. They may hold no transfer to show.",
    }),
    hasPreviousPage: t.boolean({
      description: "Whether the page was requested with `after`.",
      resolve: ({ after }) => after !== undefined,
    }),
    startCursor: t.string({
      nullable: true,
      description: "The cursor of the first transfer. Null if there is none.",
      resolve: ({ transfers }) => transfers[0]?.signature,
    }),
    endCursor: t.exposeString("endCursor", {
      nullable: true,
      description: "Pass it as `after` to go on, even if the page has no transfers.",
    }),
  }),
});

const TransferEdgeType = builder.objectRef<TransferWithMints>("TransferEdge").implement({
  description: "A transfer with its cursor.",
  fields: (t) => ({
    cursor: t.exposeString("signature", {
      description: "Pass it as `after` to go on after this transfer.",
    }),
    node: t.field({
      type: TransferType,
      description: "The transfer.",
      resolve: (transfer) => transfer,
    }),
  }),
});

export const TransferConnectionType = builder
  .objectRef<TransferPage>("TransferConnection")
  .implement({
    description: "A page of a wallet's transfers, newest first.",
    fields: (t) => ({
      nodes: t.expose("transfers", { type: [TransferType], description: "The transfers." }),
      edges: t.expose("transfers", {
        type: [TransferEdgeType],
        description: "The transfers with their cursors.",
      }),
      pageInfo: t.field({
        type: PageInfoType,
        description: "Whether and where the history goes on.",
        resolve: (page) => page,
      }),
    }),
  });
