import { readWallet, watchWallet } from "./api.js";
import { setLoading, showDoubt, showFigures, showIdentity, showLoading } from "./card.js";
import { showCoins, showCoinsLoading, startOffers } from "./coins.js";
import { offerCollect, resetCollect, startCollect } from "./collect.js";
import { byId, copies, countDown, say, sleep } from "./dom.js";
import { addCollected, showHistoryLoading, updateHistory } from "./history.js";
import { describeLookup } from "./messages.js";
import { readAccount, readMint, readParameters, toPageUrl } from "./pasted.js";
import { startSandbox } from "./sandbox.js";

/**
 * The stream shows a wallet within moments, unless a proxy holds it back: then a query shows it.
 */
const STREAM_SECONDS = 10;
/** The most that the API takes. */
const MAX_COINS = 10;

/**
 * The account that the page shows: `target` is what the URL names, `wallet` what is known of it,
 * and `historyPda` the lamports at the address that the shown history explains. `query` settles
 * when the result of a query is shown. `closing` aborts when another takes its place.
 */
let view;

/**
 * Shows the account that the URL names, or the start page. Other coins of the same account change
 * only the figures.
 */
function open(target) {
  const previous = view;
  previous?.closing.abort();
  previous?.following?.abort();
  view = undefined;
  document.body.dataset.view = target ? "creator" : "start";
  byId("notice").hidden = true;
  byId("creator").hidden = !target;
  for (const id of ["live", "mint-problem", "handle-problem"]) byId(id).textContent = "";
  byId("handle").value = target?.handle === undefined ? "" : `@${target.handle}`;
  if (!target) {
    document.title = "Tributary";
    return;
  }
  view = { target, closing: new AbortController() };
  const isSameAccount =
    previous?.wallet &&
    previous.target.handle === target.handle &&
    previous.target.socialId === target.socialId;
  if (isSameAccount) {
    view.historyPda = previous.historyPda;
  } else {
    resetCollect();
    showLoading(target);
    showHistoryLoading();
    showCoinsLoading(target);
  }
  connect(view);
  void queryIfLate(view);
}

/**
 * Follows the wallet while the page is visible. A hidden page holds no connection, because browsers
 * allow only six to a server, and all tabs share them.
 */
function connect(of) {
  of.following?.abort();
  if (document.hidden) {
    setLive(false);
    query(of);
    return;
  }
  of.following = new AbortController();
  void follow(of);
}

/** Shows the wallet and each change of it, until the page shows another account. */
async function follow(of) {
  try {
    await watchWallet(of.target, {
      signal: of.following.signal,
      show: (result) => show(of, result),
      setLive(isLive) {
        setLive(isLive);
        if (!isLive) query(of);
      },
    });
  } catch (error) {
    if (of.wallet) setLive(false);
    else of.query ??= showNotice(of, error);
  }
}

async function queryIfLate(of) {
  await sleep(STREAM_SECONDS * 1000, of.closing.signal);
  if (!of.closing.signal.aborted) query(of);
}

/** Reads the wallet once if the stream has shown neither it nor an error. */
function query(of) {
  if (!of.wallet) of.query ??= load(of);
}

async function load(of) {
  const { signal } = of.closing;
  try {
    const result = await readWallet(of.target, signal);
    if (signal.aborted || of.wallet) return;
    if (!result.wallet.balance) throw result.errors.find(({ path }) => path[1] === "balance");
    show(of, result);
  } catch (error) {
    if (!signal.aborted && !of.wallet) await showNotice(of, error);
  }
}

function setLive(isLive) {
  byId("live").textContent = isLive ? "Live" : "Updates paused";
  byId("live").classList.toggle("on", isLive);
}

/** Shows a result with a wallet. */
function show(of, { wallet, errors }) {
  if (of !== view || !wallet.balance) return;
  const isFirst = !of.wallet;
  of.wallet = wallet;
  byId("notice").hidden = true;
  byId("creator").hidden = false;
  if (isFirst) showIdentity(wallet);
  showDoubt(errors.find(({ path }) => ["handle", "profile"].includes(path[1])));
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

/** Shows why there is no account to show. Tries again by itself after an error that passes. */
async function showNotice(of, error) {
  const { handle, mints, mayBeId } = of.target;
  if (error.code === "SOCIAL_NOT_FOUND" && mayBeId) {
    const target = { socialId: handle, mints };
    history.replaceState(null, "", toPageUrl(target));
    open(target);
    return;
  }
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
  button.onclick = () =>
    open(error.code === "INVALID_MINT" ? { ...of.target, mints: [] } : of.target);
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
    view.wallet = {
      ...view.wallet,
      balance: wallet.balance,
      coins: wallet.coins ?? view.wallet.coins,
    };
    showBalance(view, view.wallet);
  }
  if (!success) return;
  addCollected(view, result);
}

/** Goes to another account, or to the same one with other coins. */
function visit(target) {
  history.pushState(null, "", toPageUrl(target));
  open(target);
}

function setCoins(mints) {
  visit({ ...view.target, mints });
}

function addCoin(mint) {
  const { mints } = view.target;
  if (mints.length < MAX_COINS && !mints.includes(mint)) setCoins([...mints, mint]);
}

function removeCoin(mint) {
  setCoins(view.target.mints.filter((other) => other !== mint));
  byId("mint").focus();
}

byId("lookup").addEventListener("submit", (event) => {
  event.preventDefault();
  const target = readAccount(byId("handle").value);
  if (target && target.handle !== "") {
    visit(target);
    return;
  }
  byId("handle-problem").textContent = target
    ? "Enter a handle, or paste the address of a profile."
    : "This is no profile. Paste an address such as https://x.com/creator, or enter a handle.";
  byId("handle").focus();
});

byId("add-coin").addEventListener("submit", (event) => {
  event.preventDefault();
  const mint = readMint(byId("mint").value);
  const problem = !mint
    ? "There is no mint in this. A mint has 32 to 44 letters and digits; the coin’s page shows it."
    : view.target.mints.length >= MAX_COINS &&
      `The page shows at most ${MAX_COINS} coins. Remove one first.`;
  byId("mint-problem").textContent = problem || "";
  if (problem) return;
  byId("mint").value = "";
  addCoin(mint);
});

document.addEventListener("visibilitychange", () => {
  if (view) connect(view);
});

window.addEventListener("popstate", () =>
  open(readParameters(new URLSearchParams(location.search))),
);

const shareUrl = () => toPageUrl({ socialId: view.wallet.socialId, mints: view.target.mints });
copies(byId("share"), shareUrl);
copies(byId("copy-address"), () => byId("address").textContent);
startCollect(showCollected);
startOffers(() => view, addCoin);
startSandbox(() => view?.wallet?.socialId, addCoin);
open(readParameters(new URLSearchParams(location.search)));
