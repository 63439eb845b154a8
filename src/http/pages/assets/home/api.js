import { sleep } from "./dom.js";

const MAX_RECONNECT_SECONDS = 30;
/** As many transfers as the page shows. */
const TRANSFERS = 20;

/** An error of the API with its code, or UNREACHABLE. */
export class ApiError extends Error {
  constructor({ message = "", code = "UNREACHABLE", retryAfterSeconds, requestId, path = [] }) {
    super(message);
    Object.assign(this, { code, retryAfterSeconds, requestId, path });
  }
}

const BALANCE = `
  balance(mints: $mints) { vault pda withdrawable vaultLamports pdaLamports }
  coins(mints: $mints) { mint stage waiting collectable reason }`;
const HISTORY = `
  history(first: ${TRANSFERS}) { nodes { kind lamports amount signature at } pageInfo { hasNextPage } }`;
const WALLET = `
  handle socialId address
  profile { name verified followers pictureUrl }${BALANCE}`;

/** An operation on the wallet of a handle or an id. The field is named `wallet` in both cases. */
function walletOperation(type, { socialId }, fields) {
  return socialId === undefined
    ? `${type} Page($handle: String!, $mints: [String!]!) { wallet(handle: $handle) {${fields} } }`
    : `${type} Page($socialId: String!, $mints: [String!]!) { wallet: walletById(socialId: $socialId) {${fields} } }`;
}

/** Reads a wallet, with its history if that is asked for, which costs a second request. */
export async function readWallet(target, { withHistory, signal }) {
  const query = walletOperation("query", target, withHistory ? WALLET + HISTORY : WALLET);
  const { data, errors } = await run({ query, variables: target }, signal);
  return { wallet: data.wallet, errors };
}

/** Moves the fees. Costs one request. */
export async function collect({ socialId, mints }) {
  const query = `mutation Collect($socialId: String!, $mints: [String!]!) {
    collect(socialId: $socialId, mints: $mints) {
      success collected collectedLamports newBalanceLamports txSignature remaining remainingLamports error message wallet {${BALANCE} }
    }
  }`;
  const { data } = await run({ query, variables: { socialId, mints } });
  return data.collect;
}

/**
 * Watches a wallet: calls `show` with each event, and `setLive` when the stream opens or breaks, until `signal` aborts.
 * Connects again after a break, later each time. An error that does not pass ends it: the query shows it.
 */
export async function watchWallet(target, { show, setLive, signal }) {
  const body = { query: walletOperation("subscription", target, WALLET), variables: target };
  for (let failures = 0; !signal.aborted; failures++) {
    let retryAfterSeconds = 0;
    try {
      const response = await send(body, "text/event-stream", signal);
      if (!response.ok) throw await toError(response);
      for await (const { data } of readEvents(response.body)) {
        if (!data?.wallet) return;
        failures = 0;
        setLive(true);
        show(data.wallet);
      }
    } catch (error) {
      retryAfterSeconds = error.retryAfterSeconds ?? 0;
    }
    if (signal.aborted) return;
    setLive(false);
    const backoffSeconds = Math.min(MAX_RECONNECT_SECONDS, 2 ** failures) + Math.random();
    await sleep(Math.max(backoffSeconds, retryAfterSeconds) * 1000, signal);
  }
}

/** The data of each server-sent event. Comments keep the connection open. */
async function* readEvents(stream) {
  let text = "";
  for await (const chunk of toChunks(stream)) {
    text += chunk;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = /^data: (.+)$/m.exec(event);
      if (data) yield JSON.parse(data[1]);
    }
  }
}

/** Not every browser can iterate over a stream. */
async function* toChunks(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (let next; !(next = await reader.read()).done;) yield next.value;
}

/** Runs an operation. Throws an ApiError if there is no data or its root field is null. */
async function run(body, signal) {
  const response = await send(body, "application/json", signal);
  const requestId = response.headers.get("x-request-id") ?? undefined;
  const { data, errors = [] } = await response.json().catch(() => ({}));
  const problems = errors.map((error) => toApiError(error, requestId));
  if (!data || Object.values(data).includes(null)) throw problems[0] ?? new ApiError({ requestId });
  return { data, errors: problems };
}

async function toError(response) {
  const { errors } = await response.json().catch(() => ({}));
  return errors ? toApiError(errors[0]) : new ApiError({});
}

function toApiError({ message, path, extensions }, requestId) {
  const { code, retryAfterSeconds } = extensions ?? {};
  return new ApiError({ message, path, code, retryAfterSeconds, requestId });
}

async function send(body, accept, signal) {
  const headers = { accept, "content-type": "application/json" };
  try {
    return await fetch("graphql", { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch {
    throw new ApiError({});
  }
}
