import { randomBytes } from "node:crypto";
import { getBase58Decoder } from "@solana/codecs-strings";
import { newMint } from "../../test/support/new-mint.ts";
import { rpcResult } from "../../test/support/rpc-answers.ts";
import { openEventStream } from "../../test/support/event-stream.ts";
import { isMethod } from "../../test/support/sandbox.ts";
import type { Attack } from "./price-of.ts";
import { nextCaller, type Target } from "./target.ts";

type Upstreams = Target["sandbox"];

const TRANSACTIONS = 30;
/** As many as a transaction locks, and as many inner instructions as it may have. */
const ACCOUNTS = 64;
const INSTRUCTIONS = 60;
const PLATFORM = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
const CREATOR = "1523400000000000123";
/** An account whose fees wait on these coins. */
const PROLIFIC = "730019458";
const PROLIFIC_COINS = [
  "B3jYpDZca1JAd21SSSKToKZDSCps6rjbse8uXwqXFaUQ",
  "DXZae83PPYHV7HJP5iDFSjsLwkefMKhRH2jAq44yhnnT",
  "79EJzfoqDYso7q7uE7AFtRyFB3UB7tmXiFZQeLPFd7hn",
  "BDuyBvjtUeeT6BdKa9r8zoJeqxJHEocEojcxpu3eF6kb",
  "7tBMAnLSyyusoWj93hxXifVyq7CNiXVhHo97974RAA3Z",
  "6r8oqxzt4p8sPh4Jr33uCEoDo4wqw8sVEKpbpUC87Xx4",
  "FpbrPgRTpQNYBavEr31h6f5TXB4TCuQd9U6hg7b48XQt",
];

const newSignature = () => getBase58Decoder().decode(randomBytes(64));

/** A transaction that pays an address, and names many accounts in many instructions of the launch platform. */
function longTransaction(signature: string, address: string) {
  const accountKeys = [address, PLATFORM, ...Array.from({ length: ACCOUNTS - 2 }, newMint)];
  const indexes = accountKeys.map((_, i) => i);
  const instruction = { programIdIndex: 1, accounts: indexes, data: "1".repeat(16), stackHeight: 2 };
  return {
    slot: 1,
    blockTime: 1_700_000_000,
    transaction: {
      signatures: [signature],
      message: {
        accountKeys,
        instructions: [{ programIdIndex: 1, accounts: [0], data: "a", stackHeight: 1 }],
      },
    },
    meta: {
      err: null,
      fee: 5_000,
      preBalances: indexes.map(() => 1_000),
      postBalances: indexes.map(() => 200_000),
      innerInstructions: [{ index: 0, instructions: new Array<object>(INSTRUCTIONS).fill(instruction) }],
      loadedAddresses: { readonly: [], writable: [] },
    },
  };
}

/** Has the chain answer each history with new transactions that are expensive to read. */
function writeLongHistories({ rpc: { faults } }: Upstreams): Promise<void> {
  let address = "";
  faults.add({
    when(call) {
      if (call.method !== "getSignaturesForAddress") return false;
      [address] = call.params as [string];
      return true;
    },
    then: (request) =>
      rpcResult(
        Array.from({ length: TRANSACTIONS }, () => ({
          ...{ signature: newSignature(), slot: 1, err: null, memo: null },
          ...{ blockTime: 1_700_000_000, confirmationStatus: "finalized" },
        })),
      )(request),
  });
  faults.add({
    when: isMethod("getTransaction"),
    then(request) {
      const { params } = JSON.parse(request.body) as { params: [string] };
      return rpcResult(longTransaction(params[0], address))(request);
    },
  });
  return Promise.resolve();
}

/** Has every simulation fail at its first sweep, so that a collect leaves out one coin after another. */
function failSimulations({ rpc, chain }: Upstreams): Promise<void> {
  rpc.faults.add({
    when: isMethod("simulateTransaction"),
    then: (request) =>
      rpcResult({
        context: { slot: chain.slot("confirmed") },
        value: {
          err: { InstructionError: [2, { Custom: 1 }] },
          logs: [],
          unitsConsumed: 1_000,
          accounts: null,
        },
      })(request),
  });
  return Promise.resolve();
}

/** Attacks through what strangers write on the chain. */
export const CHAIN_ATTACKS: readonly Attack[] = [
  {
    name: "A stream of a wallet with 10 new mints, until its first event",
    async send({ url }) {
      const mints = JSON.stringify(Array.from({ length: 10 }, newMint));
      const query = `subscription { walletById(socialId: "${CREATOR}") { coins(mints: ${mints}) { waiting } } }`;
      const stream = await openEventStream(url, { query }, { address: nextCaller() });
      while (stream.events().length === 0) await new Promise(setImmediate);
      stream.close();
    },
  },
  {
    name: "A history of 30 transactions made for it (counts as 2)",
    prepare: ({ sandbox }) => writeLongHistories(sandbox),
    send: ({ send }) =>
      send(
        "/graphql",
        {},
        {
          query: `{ walletById(socialId: "${CREATOR}") { history(first: ${TRANSACTIONS}) { nodes { signature } } } }`,
        },
      ),
  },
  {
    name: "A collect of coins that all fail its simulation",
    prepare: ({ sandbox }) => failSimulations(sandbox),
    send: ({ send }) => send("/collect", {}, { socialId: PROLIFIC, mints: PROLIFIC_COINS }),
  },
];
