import { readHistory } from "./api.js";
import { byId, create, signatureLink, sleep, toSol } from "./dom.js";
import { describeLookup } from "./messages.js";
import { drawPlot } from "./plot.js";

/** The history is read again when something arrives, but not more often: it costs two requests. */
const PAUSE_SECONDS = 30;
/** Rows before the rest is shown on demand. */
const SHOWN = 5;
const KINDS = {
  COLLECTED: { name: "Collected", sign: "+" },
  RECEIVED: { name: "Received", sign: "+" },
  WITHDRAWN: { name: "Withdrawn", sign: "−" },
};

/** The view whose account has this history. */
let current;
let isInView = false;
/** Newest first. Until the history is read, only what this page has collected. */
let transfers = [];
let isRead = false;
let hasOlder = false;

new IntersectionObserver((entries) => {
  isInView = entries.at(-1).isIntersecting;
  if (current) void updateHistory(current);
}).observe(byId("history"));

/** What the section shows before the transfers. */
const placeholder = create("div", { className: "plot placeholder" });

function fill(...content) {
  const section = byId("history");
  section.ariaBusy = String(content[0] === placeholder);
  section.replaceChildren(...content);
}

export function showHistoryLoading() {
  transfers = [];
  isRead = false;
  fill(placeholder);
}

/**
 * Reads the history of a view's wallet if it is in view, and the address holds something that the
 * shown transfers do not explain. Called at each change of the wallet.
 */
export async function updateHistory(view) {
  current = view;
  const { signal } = view.closing;
  const isWanted = () =>
    !signal.aborted &&
    isInView &&
    view.wallet &&
    view.historyPda !== view.wallet.balance.pdaLamports;
  if (view.isReadingHistory || !isWanted()) return;
  view.isReadingHistory = true;
  const isFirst = view.historyPda === undefined;
  // A collect of this page explains the change within moments.
  if (!isFirst) await sleep(3_000, signal);
  if (isWanted()) {
    await read(view);
    if (!isFirst) await sleep(PAUSE_SECONDS * 1000, signal);
  }
  view.isReadingHistory = false;
  void updateHistory(view);
}

async function read(view) {
  const { signal } = view.closing;
  const { socialId, balance } = view.wallet;
  try {
    const page = await readHistory(socialId, signal);
    if (!signal.aborted) show(page);
  } catch (error) {
    if (!signal.aborted) showProblem(error);
  }
  if (!signal.aborted) view.historyPda = balance.pdaLamports;
}

function show({ nodes, pageInfo }) {
  const known = new Set(nodes.map(({ signature }) => signature));
  // One that this page has just collected may be missing in the chain's list.
  const own = transfers.filter(({ isOwn, signature }) => isOwn && !known.has(signature));
  transfers = [...own, ...nodes];
  hasOlder = pageInfo.hasNextPage;
  isRead = true;
  render();
}

/** Says that the history could not be read, with a button to try again. */
function showProblem(error) {
  const { title } = describeLookup(error);
  const retry = () => {
    showHistoryLoading();
    current.historyPda = undefined;
    void updateHistory(current);
  };
  fill(
    create("p", { className: "hint" }, `The transfers could not be read: ${title.toLowerCase()}.`),
    create("button", { type: "button", className: "quiet", onclick: retry }, "Try again"),
  );
}

/** Adds what this page has just collected. */
export function addCollected(
  view,
  { txSignature, collected, collectedLamports, newBalanceLamports },
) {
  const at = new Date().toISOString();
  const own = {
    ...{ kind: "COLLECTED", amount: collected, lamports: collectedLamports },
    ...{ signature: txSignature, at, isOwn: true },
  };
  transfers = [own, ...transfers.filter(({ signature }) => signature !== txSignature)];
  if (!isRead) return;
  view.historyPda = newBalanceLamports;
  render();
}

function render() {
  if (transfers.length === 0) {
    const text =
      "Nothing has arrived at the address yet. What is collected shows here, transfer by transfer.";
    fill(create("p", { className: "hint" }, text));
    return;
  }
  fill(...drawArrivals(), list());
}

function drawArrivals() {
  const arrivals = transfers
    .filter(({ kind, at }) => kind !== "WITHDRAWN" && at)
    .map(({ at, lamports }) => ({ at: Date.parse(at), lamports: BigInt(lamports) }))
    .reverse();
  if (arrivals.length === 0) return [];
  const total = toSol(arrivals.reduce((sum, { lamports }) => sum + lamports, 0n));
  const count =
    arrivals.length === 1
      ? "1 transfer"
      : `${hasOlder ? "the last " : ""}${arrivals.length} transfers`;
  const since = formatTime(arrivals[0].at);
  const label = `${total} SOL arrived in ${count} since ${since}`;
  return [
    create("p", { className: "arrived" }, create("strong", {}, `${total} SOL`), ` in ${count}`),
    drawPlot(arrivals, Date.now(), label),
    create("p", { className: "axis hint" }, create("span", {}, since), create("span", {}, "now")),
  ];
}

function list() {
  const rows = create("ul", { className: "rows" }, ...transfers.slice(0, SHOWN).map(toRow));
  const rest = transfers.slice(SHOWN);
  if (rest.length === 0) return rows;
  const more = create(
    "button",
    { type: "button", className: "quiet small" },
    `Show ${rest.length} more`,
  );
  more.addEventListener("click", () => {
    const added = rest.map(toRow);
    rows.append(...added);
    more.remove();
    added[0].tabIndex = -1;
    added[0].focus();
  });
  return create("div", {}, rows, more);
}

function toRow({ kind, amount, signature, at }) {
  const { name, sign } = KINDS[kind];
  const time = at
    ? create("time", { dateTime: at, title: at }, formatTime(Date.parse(at)))
    : "Time unknown";
  return create(
    "li",
    {},
    create(
      "div",
      {},
      create("span", { className: "what" }, name),
      create("p", { className: "hint" }, time),
    ),
    create("span", { className: sign === "+" ? "sum in" : "sum" }, `${sign}${amount} SOL`),
    signatureLink(signature),
  );
}

const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const DAY = { day: "numeric", month: "short" };

/** The time of a moment today; else its day, and the year if it is another one. */
function formatTime(at) {
  const date = new Date(at);
  const now = new Date();
  if (date.toDateString() === now.toDateString()) return date.toLocaleTimeString("en", TIME);
  if (date.getFullYear() !== now.getFullYear())
    return date.toLocaleDateString("en", { ...DAY, year: "numeric" });
  return date.toLocaleString("en", { ...DAY, ...TIME });
}
