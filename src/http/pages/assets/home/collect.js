import * as api from "./api.js";
import { byId, copies, countDown, create, signatureLink } from "./dom.js";
import { describeCollect } from "./messages.js";

const NOTHING = "0.0000";
/** The most transactions of a click: of the vault and own coins, and of each of ten shared coins. */
const MAX_TRANSACTIONS = 11;
const button = byId("collect");
const outcome = byId("outcome");

/** What the button would collect; undefined until that is known. */
let offer;
/** Collecting, or waiting for the rate limit, until this aborts. */
let busy;

/** Offers what waits for an account: `{ socialId, mints, vault }`. */
export function offerCollect(newOffer) {
  offer = newOffer;
  if (!busy) label();
}

/** Forgets the account before. A collect in flight goes on, unseen. */
export function resetCollect() {
  busy?.abort();
  busy = undefined;
  offer = undefined;
  outcome.replaceChildren();
  outcome.className = "outcome";
  label();
}

/** Collects at a click, and passes each result to `onCollected`. */
export function startCollect(onCollected) {
  button.addEventListener("click", () => {
    if (!busy && offer) void run(offer, onCollected);
  });
}

async function run(target, onCollected) {
  const current = setBusy();
  const startedAt = Date.now();
  const tick = () => showBusy(`Collecting… ${Math.floor((Date.now() - startedAt) / 1000)} s`, true);
  const timer = setInterval(tick, 1000);
  current.signal.addEventListener("abort", () => clearInterval(timer));
  tick();
  show("running", "Waiting for the transaction to confirm", "This takes a few seconds.");

  const results = [];
  let result;
  do {
    result = await api.collect(target).catch((error) => error);
    if (current.signal.aborted) return;
    if (result.success) results.push(result);
    if (!(result instanceof Error)) onCollected(result);
    if (hasMore(result)) showProgress(results, result);
  } while (hasMore(result) && results.length < MAX_TRANSACTIONS);
  clearInterval(timer);
  if (result.success || (results.length > 0 && !(result instanceof Error))) showSuccess(results);
  else showError(result instanceof Error ? result : { code: result.error }, results);
  const waitSeconds = result.retryAfterSeconds;
  if (waitSeconds)
    await countDown(waitSeconds, (left) => showBusy(`Collect again in ${left} s`), current.signal);
  if (!current.signal.aborted) setIdle();
}

function setBusy() {
  busy = new AbortController();
  return busy;
}

function setIdle() {
  const hadFocus = document.activeElement === button;
  busy.abort();
  busy = undefined;
  label();
  // A disabled button would lose the focus.
  if (hadFocus && button.disabled) outcome.focus();
}

function showBusy(text, isSpinning = false) {
  // Not `disabled`, which would lose the focus.
  button.ariaDisabled = "true";
  button.classList.toggle("waiting", !isSpinning);
  const spinner = create("span", { className: "spinner", "aria-hidden": "true" });
  button.replaceChildren(...(isSpinning ? [spinner, text] : [text]));
}

function label() {
  const hasNothing = offer?.vault === NOTHING;
  button.ariaDisabled = null;
  button.classList.remove("waiting");
  button.disabled = !offer || hasNothing;
  button.textContent = !offer
    ? "Collect"
    : hasNothing
      ? "Nothing to collect yet"
      : `Collect ${offer.vault} SOL`;
}

/** One transaction moves the vault, or one shared coin: the next collect moves the rest. */
const hasMore = ({ success, remainingLamports }) => success && remainingLamports !== "0";

/** Adds up what was collected, in SOL with 4 digits after the point. */
function totalOf(results) {
  const lamports = results.reduce((sum, each) => sum + BigInt(each.collectedLamports), 0n);
  const digits = String(lamports / 100_000n).padStart(5, "0");
  return `${digits.slice(0, -4)}.${digits.slice(-4)}`;
}

function showProgress(results, { remaining }) {
  show(
    "running",
    `Collected ${totalOf(results)} SOL, ${remaining} SOL to go`,
    "Collecting the rest.",
  );
}

function showSuccess(results) {
  const last = results.at(-1);
  const left = hasMore(last) ? ` ${last.remaining} SOL still wait: collect again.` : "";
  const title = `Collected ${totalOf(results)} SOL`;
  show("success", title, `It is at the creator’s address now.${left}`);
  showTransactions(results);
}

function showTransactions(results) {
  for (const { txSignature } of results) {
    const copy = create("button", { type: "button", className: "quiet small" }, "Copy");
    outcome.append(
      create(
        "p",
        { className: "copyable" },
        create("span", {}, "Transaction ", signatureLink(txSignature)),
        copies(copy, () => txSignature),
      ),
    );
  }
}

/** `results`: what was collected before the error. */
function showError(error, results) {
  const { kind, title, text } = describeCollect(error);
  const before = results.length > 0 ? ` ${totalOf(results)} SOL were collected before.` : "";
  show(kind, title, `${text}${before}`);
  showTransactions(results);
}

function show(kind, title, text) {
  outcome.className = `outcome ${kind}`;
  outcome.replaceChildren(create("strong", {}, title), create("p", {}, text));
}
