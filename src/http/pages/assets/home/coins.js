import { byId, create, shorten } from "./dom.js";
import { describeCoin } from "./messages.js";

const STAGES = { CURVE: "Curve", POOL: "Pool", SHARED: "Vault" };
const ALL_BPS = 10_000;

/** Lists what waits in each place of the coins that the URL names. `remove` takes a mint. */
export function showCoins(coins, remove) {
  byId("coins").replaceChildren(...coins.map((coin, i) => toRow(coin, i, coins, remove)));
}

/** Shows a placeholder for each coin. */
export function showCoinsLoading({ mints }) {
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
