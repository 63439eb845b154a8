const byId = (id) => document.getElementById(id);
const form = byId("lookup");
const input = byId("handle");
const lookupButton = form.querySelector("button");
const lookupMessage = byId("lookup-message");
const collectButton = byId("collect");
const outcome = byId("outcome");

/** The wallet that the page shows. */
let wallet;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void lookUp(input.value.trim().replace(/^@/, ""));
});

for (const link of document.querySelectorAll("a[data-handle]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    input.value = link.textContent;
    void lookUp(link.textContent);
  });
}

collectButton.addEventListener("click", () => void collect());

for (const button of document.querySelectorAll("[data-copy]")) {
  // Browsers allow the clipboard only on secure connections.
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}

async function lookUp(handle) {
  if (!markBusy(lookupButton)) return;
  announce(outcome, "");
  announce(lookupMessage, `Looking up ${handle}…`);
  try {
    show(await callApi(`wallet/lookup?${new URLSearchParams({ handle })}`));
    announce(lookupMessage, `${wallet.handle} has ${wallet.balance.vault} SOL in the vault.`, "spoken");
  } catch (error) {
    byId("wallet").hidden = true;
    announce(lookupMessage, error.message, "error");
  }
  markIdle(lookupButton);
}

async function collect() {
  if (!markBusy(collectButton)) return;
  const { handle, socialId } = wallet;
  announce(outcome, `Collecting for ${handle}. Waiting for the transaction to confirm…`);
  try {
    const result = await callApi("collect", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ socialId }),
    });
    announce(
      outcome,
      `Collected ${result.collected} SOL for ${handle}. The address now holds ${result.newBalance} SOL.`,
      "success",
    );
    fill({ txSignature: result.txSignature });
    byId("transaction").hidden = false;
    // Refresh the wallet, unless the page shows another one by now.
    const after = await callApi(`wallet/lookup?${new URLSearchParams({ handle })}`).catch(() => undefined);
    if (after && wallet.socialId === socialId) show(after);
  } catch (error) {
    announce(outcome, error.message, "error");
  }
  markIdle(collectButton);
}

/** Calls the API. Throws an Error with the API's message, and with the seconds in Retry-After if there are any. */
async function callApi(path, options) {
  const response = await fetch(path, options).catch(() => {
    throw new Error("The server is unreachable. Check your connection and try again.");
  });
  const body = await response.json().catch(() => ({ message: `The server answered ${response.status}.` }));
  if (response.ok) return body;
  const seconds = response.headers.get("retry-after");
  const isComplete = !seconds || body.message.includes(`${seconds} seconds`);
  throw new Error(isComplete ? body.message : `${body.message} Try again in ${seconds} seconds.`);
}

function show(found) {
  wallet = found;
  const { balance, ...account } = found;
  fill({ ...account, ...balance });
  byId("wallet").hidden = false;
}

function fill(fields) {
  for (const [name, text] of Object.entries(fields)) {
    for (const element of document.querySelectorAll(`[data-field="${name}"]`)) element.textContent = text;
  }
}

/** Shows a text in a live region, as an `error` or a `success`, or for screen readers only (`spoken`). */
function announce(region, text, kind = "") {
  byId("transaction").hidden = true;
  (region.querySelector("p") ?? region).textContent = text;
  region.className = `message ${kind}`;
}

/** Returns false if the button is already busy. Does not use `disabled`, which would lose the focus. */
function markBusy(button) {
  if (button.ariaDisabled === "true") return false;
  button.ariaDisabled = "true";
  return true;
}

function markIdle(button) {
  button.ariaDisabled = "false";
}
