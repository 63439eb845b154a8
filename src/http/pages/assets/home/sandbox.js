import { byId } from "./dom.js";

const NAMES = {
  VAULT: "in the vault",
  CURVE: "on a bonding curve",
  POOL: "in an AMM pool",
  SHARED: "on a shared coin",
};

/**
 * In the sandbox, lets people trade at a click. `getAccount` returns the account's id; `addCoin`
 * shows the coin that the fees wait on.
 */
export function startSandbox(getAccount, addCoin) {
  if (document.body.dataset.cluster !== "sandbox") return;
  byId("sandbox").hidden = false;
  for (const button of document.querySelectorAll("[data-source]"))
    button.addEventListener("click", () => void trade(button, getAccount, addCoin));
}

async function trade(button, getAccount, addCoin) {
  const socialId = getAccount();
  if (!socialId || button.ariaDisabled === "true") return;
  button.ariaDisabled = "true";
  const { source } = button.dataset;
  try {
    const { lamports, mint } = await post({ socialId, source });
    const sol = Number(lamports) / 1e9;
    byId("sandbox-outcome").textContent =
      `${sol.toFixed(4)} SOL of fees appeared ${NAMES[source]}.`;
    if (mint && getAccount() === socialId) addCoin(mint);
  } catch (error) {
    byId("sandbox-outcome").textContent = error.message;
  }
  button.ariaDisabled = null;
}

async function post(body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch("sandbox/fees", {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  }).catch(() => {
    throw new Error("The server is unreachable. Try again.");
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok)
    throw new Error(answer.message ?? `The server answered ${response.status}. Try again.`);
  return answer;
}
