import { readWallet, watchWallet } from "./api.js";
import { setLoading, showDoubt, showFigures, showIdentity, showLoading } from "./card.js";
import { showCoins, showCoinsLoading } from "./coins.js";
import { offerCollect, resetCollect, startCollect } from "./collect.js";
import { byId, copies, countDown, say, sleep } from "./dom.js";
import { addCollected, showHistory, showHistoryLoading, showHistoryProblem } from "./history.js";
import { describeLookup } from "./messages.js";
import { readAccount, readMint, readParameters, toPageUrl } from "./pasted.js";
import { startSandbox } from "./sandbox.js";

/** How long a hidden page stays connected. Browsers allow few connections to a server. */
const HIDDEN_SECONDS = 60;
/** The history is read again when something arrives, but not more often: it costs two requests. */
const HISTORY_SECONDS = 30;

/**
 * The account that the page shows: `target` is what the URL names, `wallet` what is known of it, and `historyPda` the
 * lamports at the address that the shown history explains. `closing` aborts when another takes its place.
 */
let view;

/** Shows the account that the URL names, or the start page. */
function open(target, { isSameAccount = false } = {}) {
  const previous = view;
  previous?.closing.abort();
  previous?.following?.abort();
  view = undefined;
  document.body.dataset.view = target ? "creator" : "start";
  byId("notice").hidden = true;
  byId("creator").hidden = !target;
  byId("mint-problem").textContent = "";
  byId("handle-problem").textContent = "";
  if (!target) {
    document.title = "Tributary";
    return;
  }
  view = { target, closing: new AbortController(), wallet: undefined, historyPda: undefined };
  byId("handle").value = target.handle === undefined ? "" : `@${target.handle}`;
  if (isSameAccount) {
    view.historyPda = previous.historyPda;
  } else {
    resetCollect();
    showLoading(target);
    showHistoryLoading();
    showCoinsLoading(target);
  }
  void load(view, !isSameAccount);
  void follow(view);
}

/** Reads the wallet once. The stream may show it earlier. */
async function load(of, withHistory) {
  const { signal } = of.closing;
  try {
    const { wallet, errors } = await readWallet(of.target, { withHistory, signal });
    if (signal.aborted) return;
    const problemOf = (field) => errors.find(({ path }) => path[1] === field);
    if (wallet.balance) show(of, wallet, { isOld: true });
    else if (!of.wallet) throw problemOf("balance");
    showDoubt(problemOf("handle") ?? problemOf("profile"));
    if (wallet.history) {
      of.historyPda = wallet.balance?.pdaLamports;
      showHistory(wallet.history);
    } else if (withHistory) failHistory(of, problemOf("history"));
  } catch (error) {
    if (signal.aborted) return;
    if (!of.wallet) await showNotice(of, error);
    else if (withHistory) failHistory(of, error);
  }
}

/** Shows each change of the wallet, until the page shows another account. */
function follow(of) {
  of.following = new AbortController();
  return watchWallet(of.target, {
    signal: of.following.signal,
    show: (wallet) => show(of, wallet),
    setLive,
  });
}

function setLive(isLive) {
  byId("live").textContent = isLive ? "Live" : "Updates paused";
  byId("live").classList.toggle("on", isLive);
}

/** Shows a wallet. One read by query `isOld` if the stream was faster. */
function show(of, wallet, { isOld = false } = {}) {
  const isFirst = !of.wallet;
  if (of !== view || (isOld && !isFirst) || !wallet.balance) return;
  of.wallet = wallet;
  byId("notice").hidden = true;
  byId("creator").hidden = false;
  if (isFirst) showIdentity(wallet);
  showBalance(of, wallet);
  if (isFirst) {
    setLoading(false);
    say(`${byId("name").textContent}: ${wallet.balance.vault} SOL waiting`);
  }
  void updateHistory(of);
}

function showBalance({ target }, { socialId, balance, coins }) {
  showFigures(balance, coins);
  showCoins(coins, removeCoin);
  offerCollect({ socialId, mints: target.mints, vault: balance.vault });
}

/** Reads the history again when the address holds something that the history does not explain. */
async function updateHistory(of) {
  const isExplained = () => of.historyPda === undefined || of.historyPda === of.wallet.balance.pdaLamports;
  if (of.isUpdating || isExplained()) return;
  of.isUpdating = true;
  // A collect of this page explains it within moments.
  await sleep(3_000, of.closing.signal);
  if (!isExplained() && !of.closing.signal.aborted) {
    of.historyPda = of.wallet.balance.pdaLamports;
    await load(of, true);
    await sleep(HISTORY_SECONDS * 1000, of.closing.signal);
  }
  of.isUpdating = false;
  if (!of.closing.signal.aborted) void updateHistory(of);
}

function failHistory(of, error) {
  const { title } = describeLookup(error ?? {});
  showHistoryProblem(`The transfers could not be read: ${title.toLowerCase()}.`, () => {
    showHistoryLoading();
    void load(of, true);
  });
}

/** Shows why there is no account to show. Tries again by itself after an error that passes. */
async function showNotice(of, error) {
  const { kind, title, text, action, waitSeconds } = describeLookup(error, of.target);
  byId("creator").hidden = true;
  byId("notice").hidden = false;
  byId("notice").className = `card notice ${kind}`;
  byId("notice-title").textContent = title;
  byId("notice-text").textContent = text;
  say(`${title}. ${text}`);
  const button = byId("notice-action");
  button.hidden = !action;
  button.textContent = action ?? "";
  button.onclick = () => open(error.code === "INVALID_MINT" ? { ...of.target, mints: [] } : of.target);
  if (waitSeconds === undefined) return;
  const showSeconds = (left) => {
    byId("notice-text").textContent = `${text} Trying again in ${left} s.`;
  };
  await countDown(waitSeconds, showSeconds, of.closing.signal);
  if (!of.closing.signal.aborted && !of.wallet) open(of.target);
}

/** Shows the result of a collect before the stream does. */
function showCollected({ success, wallet, ...result }) {
  if (wallet?.balance) {
    view.wallet = { ...view.wallet, balance: wallet.balance, coins: wallet.coins ?? view.wallet.coins };
    showBalance(view, view.wallet);
  }
  if (!success) return;
  view.historyPda = result.newBalanceLamports;
  addCollected(result);
}

/** Goes to another account, or to the same one with other coins. */
function visit(target, options) {
  history.pushState(null, "", toPageUrl(target));
  open(target, options);
}

function setCoins(mints) {
  visit({ ...view.target, mints }, { isSameAccount: view.wallet !== undefined });
}

function addCoin(mint) {
  if (view && !view.target.mints.includes(mint)) setCoins([...view.target.mints, mint]);
}

function removeCoin(mint) {
  setCoins(view.target.mints.filter((other) => other !== mint));
  byId("mint").focus();
}

byId("lookup").addEventListener("submit", (event) => {
  event.preventDefault();
  const target = readAccount(byId("handle").value);
  if (target?.handle === "") return;
  if (target) visit(target);
  else
    byId("handle-problem").textContent =
      "This is no profile. Paste an address such as https://x.com/creator, or enter a handle.";
});

byId("add-coin").addEventListener("submit", (event) => {
  event.preventDefault();
  const mint = readMint(byId("mint").value);
  if (!mint) {
    byId("mint-problem").textContent =
      "There is no mint in this. A mint has 32 to 44 letters and digits; the coin’s page shows it.";
    return;
  }
  byId("mint").value = "";
  addCoin(mint);
});

document.addEventListener("visibilitychange", async () => {
  const current = view;
  if (!current) return;
  current.waking?.abort();
  if (!document.hidden) {
    if (current.following.signal.aborted) void follow(current);
    return;
  }
  current.waking = new AbortController();
  await sleep(HIDDEN_SECONDS * 1000, current.waking.signal);
  if (!current.waking.signal.aborted) current.following.abort();
});

window.addEventListener("popstate", () => open(readParameters(new URLSearchParams(location.search))));

const shareUrl = () => toPageUrl({ socialId: view.wallet.socialId, mints: view.target.mints });
copies(byId("share"), shareUrl);
copies(byId("copy-address"), () => byId("address").textContent);
startCollect(showCollected);
startSandbox(() => view?.wallet?.socialId, addCoin);
open(readParameters(new URLSearchParams(location.search)));
