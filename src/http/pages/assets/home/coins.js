import { readCoinsSeen } from "./api.js";
import { byId, create, say, shorten } from "./dom.js";
import { describeCoin } from "./messages.js";

const STAGES = { CURVE: "Curve", POOL: "Pool", SHARED: "Vault" };
const ALL_BPS = 10_000;

/** The most coins that the page offers: as many as it shows. */
const OFFERED = 10;

/** Below the field for a mint: coins of the account's last transactions. */
const offers = create("ul", { className: "rows" });
byId("add-coin").append(offers);

/** Lists what waits in each place of the coins that the URL names. `remove` takes a mint. */
export function showCoins(coins, remove) {
  byId("coins").replaceChildren(...coins.map((coin, i) => toRow(coin, i, coins, remove)));
  hideNamed(coins.map(({ mint }) => mint));
}

function hideNamed(mints) {
  for (const offer of offers.children) offer.hidden = mints.includes(offer.dataset.mint);
}

/**
 * Offers coins when the field for a mint gets the focus, once for each account: reading them costs
 * three requests. `currentView` returns the shown view, `add` takes a mint.
 */
export function startOffers(currentView, add) {
  byId("mint").addEventListener("focus", async () => {
    const view = currentView();
    if (!view?.wallet || offers.dataset.socialId === view.wallet.socialId) return;
    const { socialId } = view.wallet;
    offers.dataset.socialId = socialId;
    const mints = await readCoinsSeen(socialId, view.closing.signal).catch(() => undefined);
    if (offers.dataset.socialId !== socialId) return;
    if (!mints) delete offers.dataset.socialId;
    const offered = (mints ?? []).slice(0, OFFERED);
    offers.replaceChildren(...offered.map((mint) => toOffer(mint, add)));
    hideNamed(currentView().target.mints);
    if (offered.length > 0) say(`Coins to add: ${offered.length}`);
  });
}

function toOffer(mint, add) {
  const name = create("code", { title: mint }, shorten(mint));
  const button = {
    type: "button",
    className: "quiet small",
    "aria-label": `Add coin ${shorten(mint)}`,
    onclick: () => add(mint),
  };
  const offer = create(
    "li",
    {},
    create("span", { className: "what" }, name),
    create("span", { className: "hint" }, "Has paid this account"),
    create("button", button, "Add"),
  );
  offer.dataset.mint = mint;
  return offer;
}

/** Shows a placeholder for each coin. */
export function showCoinsLoading({ mints }) {
  delete offers.dataset.socialId;
  offers.replaceChildren();
  byId("coins").replaceChildren(...mints.map(() => create("li", { className: "skeleton" })));
}

function toRow(coin, i, coins, remove) {
  const { mint, stage, waiting, shareBps, collectable, reason } = coin;
  const problem = collectable ? undefined : describeCoin(reason);
  const name = create(
    "span",
    { className: "what" },
    create("code", { title: mint }, shorten(mint)),
  );
  if (stage) name.append(create("span", { className: "tag" }, STAGES[stage]));
  const isShared = shareBps > 0 && shareBps < ALL_BPS;
  if (isShared) name.append(create("span", { className: "tag" }, `${shareBps / 100}% share`));
  const row = create(
    "li",
    { className: collectable ? "" : "off" },
    name,
    create("span", { className: "sum" }, waiting === null ? "–" : `${waiting} SOL`),
  );
  // A coin with two places has one button.
  const isFirst = coins.findIndex((other) => other.mint === mint) === i;
  const button = {
    type: "button",
    className: "quiet remove",
    "aria-label": `Remove coin ${shorten(mint)}`,
  };
  row.append(
    isFirst ? create("button", { ...button, onclick: () => remove(mint) }, "×") : create("span"),
  );
  row.append(explain(problem, isShared));
  return row;
}

function explain(problem, isShared) {
  const className = "hint";
  const counts = isShared
    ? "Counts in what waits. A collect pays all who share it."
    : "Counts in what waits.";
  if (!problem) return create("p", { className }, counts);
  return create("p", { className }, create("strong", {}, `${problem.title}.`), ` ${problem.text}`);
}
