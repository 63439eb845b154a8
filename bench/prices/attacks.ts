import { randomBytes } from "node:crypto";
import { getBase58Decoder } from "@solana/codecs-strings";
import { openEventStream } from "../../test/support/event-stream.ts";
import { HUNDRED_QUERIES } from "./hundred-queries.ts";
import { newMint } from "../../test/support/new-mint.ts";
import { rpcResult } from "../../test/support/rpc-answers.ts";
import { isMethod } from "../../test/support/sandbox.ts";
import { callerOf } from "../measure.ts";
import type { Attack, Target } from "./price-of.ts";

const times = <T>(count: number, make: (i: number) => T) =>
  Array.from({ length: count }, (_, i) => make(i));
const join = (count: number, write: (i: number) => string) => times(count, write).join(" ");
/** Returns an object with this many members, named `v0`, `v1` and so on. */
const members = (count: number, make: (i: number) => unknown) =>
  Object.fromEntries(times(count, (i) => [`v${i}`, make(i)]));

let sent = 0;

/** Posts an operation. */
const post =
  (toBody: () => { query: string; operationName?: string; variables?: object }): Attack["send"] =>
  ({ send }) =>
    send("/graphql", {}, toBody());
/**
 * Posts an operation that no earlier request had, so that the gateway has to parse and validate it.
 */
const postNew = (toBody: Parameters<typeof post>[0]) =>
  post(() => {
    const body = toBody();
    return { ...body, query: `#${++sent}\n${body.query}` };
  });

const COLLECT_MANY = "mutation ($c: [CollectInput!]!) { collectMany(collects: $c) { success } }";
const collectMany = (c: readonly object[]) =>
  post(() => ({ query: COLLECT_MANY, variables: { c } }));

/** A caller with five requests left in its rate limit. */
const LIMITED = { "x-forwarded-for": "203.0.113.10" };
/** About as many tokens and fields as a document may have. */
const TEN_COLLECTS = `mutation { ${join(10, (i) => `c${i}: collect(socialId: "${i + 1}") { ${"success ".repeat(190)} }`)} }`;

const LONG_MINTS = join(20, (i) => `"${"m".repeat(120)}${i}"`);
const EQUAL_ARGUMENTS = join(10, (i) => {
  const places = join(6, (j) => `...P${j}`);
  return `query Q${i} { ${join(16, (k) => `w${k}: walletById(socialId: "7") { ${places} }`)} }`;
}).concat(
  join(6, (j) => ` fragment P${j} on Wallet { ...S }`),
  ` fragment S on Wallet { coins(mints: [${LONG_MINTS}]) { mint } coins(mints: [${LONG_MINTS}]) { mint } }`,
);
const NESTED_FRAGMENTS = `${join(10, (i) => `query Q${i} { ...F0 }`)} ${join(590, (i) => `fragment F${i} on Query { __typename ...F${i + 1} }`)} fragment F590 on Query { __typename }`;
/** Of accounts that the network does not have. */
const MANY_ERRORS = `{ ${"a".repeat(128)}: walletsById(socialIds: [${join(100, (i) => `"${2n ** 63n + BigInt(i)}"`)}]) { ${join(22, (i) => `h${i}: handle`)} } }`;

const THIRTY_MINTS = `query (${join(30, (i) => `$v${i}: String!`)}) {
  walletsById(socialIds: [${join(100, (i) => `"${i + 1}"`)}]) {
    ${join(3, (i) => `c${i}: coins(mints: [${join(10, (j) => `$v${10 * i + j}`)}]) { waiting }`)}
  }
}`;
const KNOWN_MINT = newMint();

const DERIVATIONS =
  "query ($ids: [String!]!) { walletsById(socialIds: $ids) { address derivation { program seeds bump } } }";

const HUNDRED_COINS = `query (${join(100, (i) => `$v${i}: [String!]!`)}) {
  ${join(100, (i) => `w${i}: walletById(socialId: "${i + 1}") { coins(mints: $v${i}) { waiting } }`)}
}`;

const GRAPHQL_ATTACKS: readonly Attack[] = [
  {
    name: "330 equal fields in an operation that does not run",
    send: postNew(() => ({
      operationName: "Q",
      query: `query Q { __typename } query Other { ${join(330, () => 'wallet(handle: "creator") { address }')} }`,
    })),
  },
  ...Object.entries(HUNDRED_QUERIES).map(([kind, { query, newVariables }]) => ({
    name: `100 new ${kind}`,
    send: postNew(() => ({ query, variables: newVariables() })),
  })),
  {
    name: "The derivations of 100 new ids",
    send: postNew(() => ({
      query: DERIVATIONS,
      variables: { ids: Object.values(HUNDRED_QUERIES.ids.newVariables()) },
    })),
  },
  { name: "`variables` with 9,000 unknown members", send: collectMany([members(9_000, () => 1)]) },
  {
    name: "Invalid `variables` of 90 kB",
    send: collectMany(times(8, () => members(5, () => "\n".repeat(1_100)))),
  },
  {
    name: "Equal arguments of 5 kB in 600 places of ten operations",
    send: postNew(() => ({ operationName: "Q0", query: EQUAL_ARGUMENTS })),
  },
  {
    name: "Fragments nested 590 deep in ten operations",
    send: postNew(() => ({ operationName: "Q0", query: NESTED_FRAGMENTS })),
  },
  {
    name: "2,200 errors, with the longest alias",
    send: postNew(() => ({ query: MANY_ERRORS })),
  },
  {
    name: "100 handles of 88 kB",
    send: post(() => ({
      query: `query ($a: String!) { wallets(handles: [${join(100, () => "$a")}]) { id } }`,
      variables: { a: "x".repeat(88_000) },
    })),
  },
  {
    name: "A new operation, refused for its cost",
    prepare: ({ send }) =>
      Promise.all(times(15, () => send("/wallet/lookup?handle=creator", LIMITED))),
    send: ({ send }) => send("/graphql", LIMITED, { query: `#${++sent}\n${TEN_COLLECTS}` }),
  },
  {
    name: "3,000 mints in a known operation for 100",
    prepare: post(() => ({ query: THIRTY_MINTS, variables: members(30, () => KNOWN_MINT) })),
    send: post(() => ({ query: THIRTY_MINTS, variables: members(30, newMint) })),
  },
  {
    name: "100 wallets with a new mint each (counts as 3)",
    send: postNew(() => ({ query: HUNDRED_COINS, variables: members(100, () => [newMint()]) })),
  },
];

const TRANSACTIONS = 30;
/**
 * The most accounts that a transaction may lock, and the most inner instructions that it may have.
 */
const ACCOUNTS = 64;
const INSTRUCTIONS = 60;
const AMM = "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA";
const PLATFORM = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
const CREATOR = "1523400000000000123";

/** Pools of no coin, as many as one call can read. */
const POOLS = times(98, newMint);
const SWEEP = getBase58Decoder().decode(Buffer.from("20f6bf3408c949ba", "hex"));

/**
 * A transaction that pays an address. It has many instructions of the launch platform, each with
 * many accounts. Half of them sweep pools to this vault authority.
 */
function longTransaction(signature: string, address: string, authority: string) {
  const known = [address, PLATFORM, AMM, authority];
  const pools = times(ACCOUNTS / 2, (i) => POOLS[(sent + i) % POOLS.length]!);
  sent += pools.length;
  const accountKeys = [...known, ...pools, ...times(ACCOUNTS / 2 - known.length, newMint)];
  const indexes = accountKeys.map((_, i) => i);
  const toInstruction = (i: number) => ({
    programIdIndex: 1 + (i % 2),
    accounts: indexes.with(2, known.length + ((i >> 1) % pools.length)).with(6, 3),
    data: i % 2 ? SWEEP : "1".repeat(16),
    stackHeight: 2,
  });
  const outer = { programIdIndex: 1, accounts: [0], data: "a", stackHeight: 1 };
  return {
    slot: 1,
    blockTime: 1_700_000_000,
    transaction: { signatures: [signature], message: { accountKeys, instructions: [outer] } },
    meta: {
      err: null,
      fee: 5_000,
      preBalances: indexes.map(() => 1_000),
      postBalances: indexes.map(() => 200_000),
      innerInstructions: [{ index: 0, instructions: times(INSTRUCTIONS, toInstruction) }],
      loadedAddresses: { readonly: [], writable: [] },
    },
  };
}

/**
 * Makes the chain answer every read of a history with new transactions that are expensive to read.
 */
function writeLongHistories({ sandbox: { accounts, chain, rpc } }: Target): void {
  const { ammVaultAuthority } = accounts.find(({ id }) => id === CREATOR)!;
  for (const pool of POOLS) {
    const data = Buffer.concat([Buffer.from("f19a6d0411b16dbc", "hex"), randomBytes(279)]);
    chain.setAccount(pool, { lamports: 10n ** 9n, owner: AMM, data });
  }
  /** By signature: the address in whose list the transaction is. */
  const addresses = new Map<string, string>();
  rpc.faults.add({
    when: isMethod("getSignaturesForAddress"),
    then(request) {
      const [address] = (JSON.parse(request.body) as { params: [string] }).params;
      const transactions = times(TRANSACTIONS, () => {
        const signature = getBase58Decoder().decode(randomBytes(64));
        addresses.set(signature, address);
        return {
          ...{ signature, slot: 1, err: null, memo: null },
          ...{ blockTime: 1_700_000_000, confirmationStatus: "finalized" },
        };
      });
      return rpcResult(transactions)(request);
    },
  });
  rpc.faults.add({
    when: isMethod("getTransaction"),
    then(request) {
      const [signature] = (JSON.parse(request.body) as { params: [string] }).params;
      const address = addresses.get(signature)!;
      return rpcResult(longTransaction(signature, address, ammVaultAuthority))(request);
    },
  });
}

/**
 * Makes every simulation fail at its first sweep, so that a collect leaves out one coin after
 * another.
 */
function failSimulations({ sandbox: { rpc, chain } }: Target): void {
  const err = { InstructionError: [2, { Custom: 1 }] };
  const value = { err, logs: [], unitsConsumed: 1_000, accounts: null };
  rpc.faults.add({
    when: isMethod("simulateTransaction"),
    then: (request) => rpcResult({ context: { slot: chain.slot("finalized") }, value })(request),
  });
}

/** Attacks by data that strangers write to the chain. */
const CHAIN_ATTACKS: readonly Attack[] = [
  {
    name: "A stream of a wallet with 10 new mints, until its first event",
    async send({ url }) {
      const query = `subscription { walletById(socialId: "${CREATOR}") { coins(mints: ${JSON.stringify(times(10, newMint))}) { waiting } } }`;
      const stream = await openEventStream(url, { query }, { address: callerOf(++sent) });
      while (stream.events().length === 0) await new Promise(setImmediate);
      stream.close();
    },
  },
  {
    name: "A history of 30 crafted transactions (counts as 2)",
    prepare: writeLongHistories,
    send: post(() => ({
      query: `{ walletById(socialId: "${CREATOR}") { history(first: ${TRANSACTIONS}) { nodes { mints } } } }`,
    })),
  },
  {
    name: "The coins of 60 crafted transactions (counts as 3)",
    prepare: writeLongHistories,
    send({ send }) {
      // From many blocks, because one block's share pays for twelve.
      const caller = { "x-forwarded-for": `198.18.${++sent % 256}.1` };
      const query = `{ walletById(socialId: "${CREATOR}") { coinsSeen } }`;
      return send("/graphql", caller, { query });
    },
  },
  {
    name: "A collect of 10 new mints below its minimum",
    send({ send }) {
      return send(
        "/collect",
        {},
        { socialId: CREATOR, mints: times(10, newMint), minimum: "1000" },
      );
    },
  },
  {
    name: "A collect of coins that all fail its simulation",
    prepare: failSimulations,
    send({ send, sandbox }) {
      const { id, coins } = sandbox.accounts.find(({ handle }) => handle === "prolific")!;
      return send(
        "/collect",
        {},
        { socialId: id, mints: coins.slice(0, 7).map(({ mint }) => mint) },
      );
    },
  },
];

/** A caller that has used up its rate limit. */
const REFUSED = { "x-forwarded-for": "203.0.113.9" };

const CHUNKS = 100_000;
const CHUNKS_PER_WRITE = 1_000;
const PACKETS = 16_384;
/** Makes the gateway end the connection once it has read the body. */
const LAST_REQUEST = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

async function useUpLimit({ send }: Target): Promise<void> {
  while ((await send("/wallet/lookup", REFUSED)) !== 429);
}

const toHead = (start: string, headers: Record<string, string>) => {
  const all = {
    "x-forwarded-for": callerOf(++sent),
    "content-type": "application/json",
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${start} HTTP/1.1\r\nHost: x\r\n${lines.join("")}\r\n`;
};

/** Sends a body in chunks of one byte. */
function inChunks(start: string, headers?: Record<string, string>): Attack["send"] {
  const chunks = times(CHUNKS / CHUNKS_PER_WRITE, () => "1\r\nx\r\n".repeat(CHUNKS_PER_WRITE));
  const pieces = [...chunks, `0\r\n\r\n${LAST_REQUEST}`];
  return ({ flood }) =>
    flood(toHead(start, { "transfer-encoding": "chunked", ...headers }), pieces);
}

/** Sends a body in packets of one byte. */
function inPackets(start: string): Attack["send"] {
  const pieces = [...times(PACKETS, () => " "), LAST_REQUEST];
  return ({ flood }) => flood(toHead(start, { "content-length": String(PACKETS) }), pieces);
}

const GRAPHQL = "/graphql?query={__typename}";
/** An `Accept` header that no earlier request had. */
const accept = (length: number) => ({
  accept: `a/b${++sent}${",*/*".repeat(length / 4)}`.slice(0, length),
});
const withGzip = { "accept-encoding": "gzip" };

const HTTP_ATTACKS: readonly Attack[] = [
  { name: "One-byte chunks, unknown path", send: inChunks("POST /nowhere") },
  { name: "One-byte chunks, wrong method", send: inChunks("POST /wallet/lookup") },
  {
    name: "One-byte chunks above the limit",
    prepare: useUpLimit,
    send: inChunks("POST /collect", REFUSED),
  },
  { name: "One-byte chunks, lookup", send: inChunks("GET /wallet/lookup?handle=creator") },
  { name: "One-byte chunks, collect", send: inChunks("POST /collect") },
  { name: "One-byte chunks, GraphQL", send: inChunks("POST /graphql") },
  { name: "One-byte packets, unknown path", send: inPackets("POST /nowhere") },
  { name: "One-byte packets, GraphQL", send: inPackets("POST /graphql") },
  { name: "`Accept` of 500 bytes", send: ({ send }) => send(GRAPHQL, accept(500)) },
  { name: "`Accept` of 15 kB", send: ({ send }) => send(GRAPHQL, accept(15_000)) },
  {
    name: "`Accept` of 15 kB above the limit",
    prepare: useUpLimit,
    send: ({ send }) => send(GRAPHQL, { ...accept(15_000), ...REFUSED }),
  },
  {
    name: "A request above the limit",
    prepare: useUpLimit,
    send: ({ send }) => send(GRAPHQL, REFUSED),
  },
  { name: "`/`", send: ({ send }) => send("/", withGzip) },
  {
    name: "`/?handle=`, a new one each time",
    send: ({ send }) => send(`/?handle=new${++sent}`, withGzip),
  },
  { name: "`/openapi.json`", send: ({ send }) => send("/openapi.json") },
  { name: "The largest asset", send: ({ send }) => send("/assets/graphiql-viewer.js", withGzip) },
  {
    name: "The largest asset above the limit",
    prepare: useUpLimit,
    send: ({ send }) => send("/assets/graphiql-viewer.js", { ...withGzip, ...REFUSED }),
  },
  { name: "`/metrics`, without `ADMIN_PORT`", send: ({ send }) => send("/metrics") },
];

/** All attacks on the CPU, in the order of PRICES in prices.test.ts. */
export const ATTACKS: readonly Attack[] = [...GRAPHQL_ATTACKS, ...CHAIN_ATTACKS, ...HTTP_ATTACKS];
