import { byId, create, signatureLink, toSol } from "./dom.js";
import { drawPlot } from "./plot.js";

/** Rows before the rest is shown on demand. */
const SHOWN = 5;
const KINDS = {
  COLLECTED: { name: "Collected", sign: "+" },
  RECEIVED: { name: "Received", sign: "+" },
  WITHDRAWN: { name: "Withdrawn", sign: "−" },
};

/** The transfers that are shown, newest first. */
let transfers = [];
let hasOlder = false;

/** Shows a placeholder. */
export function showHistoryLoading() {
  transfers = [];
  byId("history").replaceChildren(create("div", { className: "plot skeleton" }));
}

/** Shows a page of transfers, newest first. */
export function showHistory({ nodes, pageInfo }) {
  const known = new Set(nodes.map(({ signature }) => signature));
  // One that this page has just collected may be missing in the chain's list.
  const own = transfers.filter(({ isOwn, signature }) => isOwn && !known.has(signature));
  transfers = [...own, ...nodes];
  hasOlder = pageInfo.hasNextPage;
  render();
}

/** Adds what this page has just collected. */
export function addCollected({ txSignature, collected, collectedLamports }) {
  const at = new Date().toISOString();
  const own = {
    ...{ kind: "COLLECTED", amount: collected, lamports: collectedLamports },
    ...{ signature: txSignature, at, isOwn: true },
  };
  transfers = [own, ...transfers.filter(({ signature }) => signature !== txSignature)];
  render();
}

/** Says that the history could not be read, with a button to try again. */
export function showHistoryProblem(text, retry) {
  byId("history").replaceChildren(
    create("p", { className: "hint" }, text),
    create("button", { type: "button", className: "quiet", onclick: retry }, "Try again"),
  );
}

function render() {
  if (transfers.length === 0) {
    const text =
      "Nothing has arrived at the address yet. What is collected shows here, transfer by transfer.";
    byId("history").replaceChildren(create("p", { className: "hint" }, text));
    return;
  }
  byId("history").replaceChildren(...drawArrivals(), list());
}

function drawArrivals() {
  const arrivals = transfers
    .filter(({ kind, at }) => kind !== "WITHDRAWN" && at)
    .map(({ at, lamports }) => ({ at: Date.parse(at), lamports: BigInt(lamports) }))
    .reverse();
  if (arrivals.length === 0) return [];
  const total = toSol(arrivals.reduce((sum, { lamports }) => sum + lamports, 0n));
  const count =
    arrivals.length === 1 ? "1 transfer" : `${hasOlder ? "the last " : ""}${arrivals.length} transfers`;
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
  const more = create("button", { type: "button", className: "quiet small" }, `Show ${rest.length} more`);
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
  const time = at ? create("time", { dateTime: at, title: at }, formatTime(Date.parse(at))) : "Time unknown";
  return create(
    "li",
    {},
    create("div", {}, create("span", { className: "what" }, name), create("p", { className: "hint" }, time)),
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
