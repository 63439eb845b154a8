import { sleep } from "./dom.js";

const MAX_RECONNECT_SECONDS = 30;
/** As many transfers as the page shows. */
const TRANSFERS = 20;

/** An error of the API with its code, or UNREACHABLE. */
export class ApiError extends Error {
  constructor({ message = "", code = "UNREACHABLE", path = [], ...details }) {
    super(message);
    Object.assign(this, { code, path, ...details });
  }
}

const BALANCE = `
  balance(mints: $mints) { vault pda withdrawable vaultLamports pdaLamports }
  coins(mints: $mints) { mint stage waiting shareBps collectable reason }`;
const HISTORY = `
  history(first: ${TRANSFERS}) { nodes { kind lamports amount signature at } pageInfo { hasNextPage } }`;
const WALLET = `
  handle socialId address derivation { program seeds bump }
  profile { name verified followers pictureUrl }${BALANCE}`;

/** An operation on the wallet of a handle or an id. The field is named `wallet` in both cases. */
function walletOperation(type, { socialId }, fields) {
  return socialId === undefined
    ? `${type} Page($handle: String!, $mints: [String!]!) { wallet(handle: $handle) {${fields} } }`
    : `${type} Page($socialId: String!, $mints: [String!]!) { wallet: walletById(socialId: $socialId) {${fields} } }`;
}

/** Reads a wallet. Costs one request. */
export async function readWallet(target, signal) {
  const { data, errors } = await run(
    { query: walletOperation("query", target, WALLET), variables: target },
    signal,
  );
  return { wallet: data.wallet, errors };
}

/** Reads the last transfers of an account. Costs two requests. */
export async function readHistory(socialId, signal) {
  const query = `query History($socialId: String!) { wallet: walletById(socialId: $socialId) {${HISTORY} } }`;
  const { data, errors } = await run({ query, variables: { socialId } }, signal);
  if (!data.wallet.history) throw errors[0];
  return data.wallet.history;
}

/** Reads the mints that an account's last transactions named. Costs three requests. */
export async function readCoinsSeen(socialId, signal) {
  const query = `query CoinsSeen($socialId: String!) { wallet: walletById(socialId: $socialId) { coinsSeen } }`;
  const { data, errors } = await run({ query, variables: { socialId } }, signal);
  if (!data.wallet.coinsSeen) throw errors[0];
  return data.wallet.coinsSeen;
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
 * Watches a wallet: calls `show` with each event, the first at once, and `setLive` when the stream
 * opens or ends, until `signal` aborts. Connects again then, after each failure later. Throws an
 * error that does not pass. Costs one request.
 */
export async function watchWallet(target, { show, setLive, signal }) {
  const body = { query: walletOperation("subscription", target, WALLET), variables: target };
  for (let failures = 0; !signal.aborted; failures++) {
    let retryAfterSeconds = 0;
    let lastError;
    try {
      const response = await send(body, "text/event-stream", signal);
      if (!response.ok) throw await toError(response);
      for await (const event of readEvents(response.body)) {
        const { data, errors } = toResult(event, response);
        // Only the last event has it, when the service ends the stream.
        retryAfterSeconds = event.extensions?.retryAfterSeconds ?? 0;
        if (!data?.wallet) {
          lastError = errors[0] ?? new ApiError({});
          break;
        }
        failures = 0;
        setLive(true);
        show({ wallet: data.wallet, errors });
      }
    } catch (error) {
      retryAfterSeconds = error.retryAfterSeconds ?? 0;
    }
    if (signal.aborted) return;
    if (lastError) throw lastError;
    setLive(false);
    const backoffSeconds = Math.min(MAX_RECONNECT_SECONDS, 2 ** failures);
    await sleep((Math.max(backoffSeconds, retryAfterSeconds) + Math.random()) * 1000, signal);
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
  const { data, errors } = toResult(await response.json().catch(() => ({})), response);
  if (!data || Object.values(data).includes(null)) throw errors[0] ?? toApiError({}, response);
  return { data, errors };
}

/** A result of GraphQL, its errors as ApiErrors. */
function toResult({ data, errors = [] }, response) {
  return { data, errors: errors.map((error) => toApiError(error, response)) };
}

async function toError(response) {
  const { errors = [{}] } = await response.json().catch(() => ({}));
  return toApiError(errors[0], response);
}

function toApiError({ message, path, extensions }, { headers }) {
  const { code, retryAfterSeconds, txSignature } = extensions ?? {};
  const requestId = headers.get("x-request-id") ?? undefined;
  return new ApiError({ message, path, code, retryAfterSeconds, txSignature, requestId });
}

async function send(body, accept, signal) {
  const headers = { accept, "content-type": "application/json" };
  try {
    return await fetch("graphql", { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch {
    throw new ApiError({});
  }
}
