import * as api from "./api.js";
import { byId, copies, countDown, create, signatureLink } from "./dom.js";
import { describeCollect } from "./messages.js";

const NOTHING = "0.0000";
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

  const result = await api.collect(target).catch((error) => error);
  if (current.signal.aborted) return;
  clearInterval(timer);
  if (result instanceof Error) showError(result);
  else if (result.success) showSuccess(result);
  else showError({ code: result.error });
  if (!(result instanceof Error)) onCollected(result);
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

function showSuccess({ collected, txSignature, remaining, remainingLamports }) {
  const left =
    remainingLamports === "0" ? "" : ` ${remaining} SOL still wait on coins: collect again.`;
  show("success", `Collected ${collected} SOL`, `It is at the creator’s address now.${left}`);
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

function showError(error) {
  const { kind, title, text } = describeCollect(error);
  show(kind, title, text);
}

function show(kind, title, text) {
  outcome.className = `outcome ${kind}`;
  outcome.replaceChildren(create("strong", {}, title), create("p", {}, text));
}
