import type { Attack } from "./price-of.ts";
import { nextCaller, type Target } from "./target.ts";

/** The caller that has used up its limit. */
const REFUSED = { "x-forwarded-for": "203.0.113.9" };

const CHUNKS = 100_000;
const CHUNKS_PER_WRITE = 1_000;
const PACKETS = 16_384;
/** Ends the connection, once the body has been read. */
const LAST_REQUEST = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

async function useUpLimit({ send }: Target): Promise<void> {
  while ((await send("/wallet/lookup", REFUSED)) !== 429);
}

const toHead = (start: string, headers: Record<string, string>) =>
  `${start} HTTP/1.1\r\nHost: x\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n`;

/** Sends a body in chunks of one byte. */
function inChunks(start: string, headers?: Record<string, string>): Attack["send"] {
  const pieces = [
    ...new Array<string>(CHUNKS / CHUNKS_PER_WRITE).fill("1\r\nx\r\n".repeat(CHUNKS_PER_WRITE)),
    `0\r\n\r\n${LAST_REQUEST}`,
  ];
  const common = { "content-type": "application/json", "transfer-encoding": "chunked" };
  return ({ flood }) =>
    flood(toHead(start, { "x-forwarded-for": nextCaller(), ...common, ...headers }), pieces);
}

/** Sends a body in packets of one byte. */
function inPackets(start: string): Attack["send"] {
  const pieces = [...new Array<string>(PACKETS).fill(" "), LAST_REQUEST];
  const common = { "content-type": "application/json", "content-length": String(PACKETS) };
  return ({ flood }) =>
    flood(toHead(start, { "x-forwarded-for": nextCaller(), ...common }), pieces, { apart: true });
}

const GRAPHQL = "/graphql?query={__typename}";
let sent = 0;
/** An `Accept` header that no earlier request had. */
const accept = (length: number) => ({ accept: `a/b${++sent}${",*/*".repeat(length / 4)}`.slice(0, length) });
const withGzip = { "accept-encoding": "gzip" };

export const HTTP_ATTACKS: readonly Attack[] = [
  { name: "One-byte chunks, unknown path", send: inChunks("POST /nowhere") },
  { name: "One-byte chunks, wrong method", send: inChunks("POST /wallet/lookup") },
  { name: "One-byte chunks above the limit", prepare: useUpLimit, send: inChunks("POST /collect", REFUSED) },
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
  { name: "A request above the limit", prepare: useUpLimit, send: ({ send }) => send(GRAPHQL, REFUSED) },
  { name: "`/`", send: ({ send }) => send("/", withGzip) },
  { name: "`/?handle=`, a new one each time", send: ({ send }) => send(`/?handle=new${++sent}`, withGzip) },
  { name: "`/openapi.json`", send: ({ send }) => send("/openapi.json") },
  { name: "The largest asset", send: ({ send }) => send("/assets/graphiql-viewer.js", withGzip) },
  {
    name: "The largest asset above the limit",
    prepare: useUpLimit,
    send: ({ send }) => send("/assets/graphiql-viewer.js", { ...withGzip, ...REFUSED }),
  },
  { name: "`/metrics`, without `ADMIN_PORT`", send: ({ send }) => send("/metrics") },
];
