const byId = (id) => document.getElementById(id);
const form = byId("lookup");
const input = byId("handle");
const lookupButton = form.querySelector("button");
const lookupMessage = byId("lookup-message");
const collectButton = byId("collect");
const outcome = byId("outcome");

/** The wallet that is shown. */
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
  // Only pages that came over a safe connection may write to the clipboard.
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}

async function lookUp(handle) {
  if (!start(lookupButton)) return;
  tell(outcome, "");
  tell(lookupMessage, `Looking up ${handle}…`);
  try {
    show(await ask(`wallet/lookup?${new URLSearchParams({ handle })}`));
    tell(lookupMessage, `${wallet.handle} has ${wallet.balance.vault} SOL in the vault.`, "spoken");
  } catch (error) {
    byId("wallet").hidden = true;
    tell(lookupMessage, error.message, "error");
  }
  end(lookupButton);
}

async function collect() {
  if (!start(collectButton)) return;
  const { handle, socialId } = wallet;
  tell(outcome, `Collecting for ${handle}: this takes until the transaction is confirmed…`);
  try {
    const result = await ask("collect", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ socialId }),
    });
    tell(
      outcome,
      `Collected ${result.collected} SOL for ${handle}. The address now holds ${result.newBalance} SOL.`,
      "success",
    );
    fill({ txSignature: result.txSignature });
    byId("transaction").hidden = false;
    // What is shown of the wallet is of before; another may be shown by now.
    const after = await ask(`wallet/lookup?${new URLSearchParams({ handle })}`).catch(() => undefined);
    if (after && wallet.socialId === socialId) show(after);
  } catch (error) {
    tell(outcome, error.message, "error");
  }
  end(collectButton);
}

/** The API's answer. What it refuses is thrown with its message, which is made to say how long to wait. */
async function ask(path, options) {
  const response = await fetch(path, options).catch(() => {
    throw new Error("The server cannot be reached.");
  });
  const body = await response.json().catch(() => ({ message: `The server answered ${response.status}.` }));
  if (response.ok) return body;
  const seconds = response.headers.get("retry-after");
  const isSaid = !seconds || body.message.includes(`${seconds} seconds`);
  throw new Error(isSaid ? body.message : `${body.message} Wait ${seconds} seconds.`);
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

/** Says it in a live region, as an `error`, or only `spoken`. */
function tell(region, text, kind = "") {
  byId("transaction").hidden = true;
  (region.querySelector("p") ?? region).textContent = text;
  region.className = `message ${kind}`;
}

/** Whether what the button does may start. A button that is `disabled` would lose the focus. */
function start(button) {
  if (button.ariaDisabled === "true") return false;
  button.ariaDisabled = "true";
  return true;
}

function end(button) {
  button.ariaDisabled = "false";
}
