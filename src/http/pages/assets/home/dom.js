/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** Creates an element with properties, attributes (names with `-`, and `role`) and children. */
export function create(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** Creates an SVG element. */
export function createSvg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Tells a screen reader, and nobody else. */
export function say(text) {
  byId("spoken").textContent = text;
}

/**
 * Makes a button copy a text, and say so. Browsers allow the clipboard only on secure connections.
 */
export function copies(button, toText) {
  const label = button.textContent;
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(toText());
    button.textContent = "Copied";
    say("Copied");
    setTimeout(() => (button.textContent = label), 2000);
  });
  return button;
}

/** Resolves after this time, or at once when `signal` aborts. */
export function sleep(milliseconds, signal) {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** Calls `show` with the seconds that are left, each second, until none are. */
export async function countDown(seconds, show, signal) {
  const end = Date.now() + seconds * 1000;
  for (let left; !signal.aborted && (left = Math.ceil((end - Date.now()) / 1000)) > 0;) {
    show(left);
    await sleep(end - Date.now() - (left - 1) * 1000, signal);
  }
}

/** Formats lamports as SOL with 4 decimals, truncated. */
export function toSol(lamports) {
  const units = String(lamports / 100_000n).padStart(5, "0");
  return `${units.slice(0, -4)}.${units.slice(-4)}`;
}

/** Shortens an address or a signature. */
export const shorten = (text) => `${text.slice(0, 4)}…${text.slice(-4)}`;

/** The explorer's page of a transaction; undefined where there is none. */
export function explorerUrl(signature) {
  const { cluster } = document.body.dataset;
  if (cluster === "mainnet-beta") return `https://solscan.io/tx/${signature}`;
  if (cluster === "devnet" || cluster === "testnet")
    return `https://explorer.solana.com/tx/${signature}?cluster=${cluster}`;
  return undefined;
}

/** A transaction's shortened signature, with a link to the explorer if there is one. */
export function signatureLink(signature) {
  const href = explorerUrl(signature);
  const code = create("code", { title: signature }, shorten(signature));
  if (!href) return code;
  const name = `Transaction ${shorten(signature)} in the explorer`;
  return create(
    "a",
    { href, target: "_blank", rel: "noopener noreferrer", "aria-label": name },
    code,
  );
}
