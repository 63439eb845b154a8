import { byId, create, say } from "./dom.js";

/** The hosts for pictures that the page's policy allows: the network's, and the sandbox's. */
const PICTURES = /^(https:\/\/pbs\.twimg\.com|http:\/\/127\.0\.0\.1:\d+)\//;
const AMOUNTS = ["vault", "pda", "withdrawable"];
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** Shows the card of an account that is still being looked up, in the size that it will have. */
export function showLoading({ handle, socialId }) {
  const name = handle === undefined ? `Account ${socialId}` : `@${handle}`;
  byId("name").textContent = name;
  byId("about").textContent = name;
  byId("avatar").replaceChildren();
  byId("verified").setAttribute("hidden", "");
  byId("doubt").hidden = true;
  for (const id of AMOUNTS) byId(id).textContent = "0.0000";
  byId("address").textContent = "1".repeat(44);
  byId("social-id").textContent = "0".repeat(16);
  setLoading(true);
  say(`Looking up ${name}`);
}

/** While it loads, placeholders stand for the text. */
export function setLoading(isLoading) {
  byId("creator").classList.toggle("loading", isLoading);
  byId("creator").ariaBusy = String(isLoading);
}

/** Shows who the account belongs to. */
export function showIdentity({ handle, socialId, address, derivation, profile }) {
  const name = profile?.name ?? (handle === null ? `Account ${socialId}` : `@${handle}`);
  byId("name").textContent = name;
  byId("about").replaceChildren(...describe(handle, profile));
  byId("verified").toggleAttribute("hidden", !profile?.verified);
  showPicture(name, profile?.pictureUrl);
  byId("address").textContent = address;
  byId("social-id").textContent = socialId;
  showDerivation(derivation);
  const title = handle === null ? name : `${name} (@${handle})`;
  document.title = `${title} · Tributary`;
}

function showDerivation({ program, seeds, bump }) {
  byId("program").textContent = program;
  byId("first-seed").textContent = seeds[0];
  byId("second-seed").textContent = seeds[1];
  byId("bump").textContent = bump;
  const words = seeds.map((seed) => `string:${seed}`).join(" ");
  byId("derive").textContent = `solana find-program-derived-address ${program} ${words}`;
}

function describe(handle, profile) {
  const followers = profile?.followers;
  const parts = [];
  if (handle !== null) parts.push(create("span", {}, `@${handle}`));
  if (typeof followers === "number") {
    if (parts.length > 0) parts.push(create("span", { className: "dot" }, " · "));
    const noun = followers === 1 ? "follower" : "followers";
    parts.push(create("span", {}, `${compact.format(followers)} ${noun}`));
  }
  return parts;
}

/** The initials, and above them the picture once it has loaded. */
function showPicture(name, url) {
  const words = name.replace(/^@/, "").split(/\s+/).filter(Boolean);
  const initials = words.slice(0, 2).map((word) => [...word][0].toUpperCase());
  const avatar = byId("avatar");
  // The same picture again: replacing it would make it flicker.
  if (url && avatar.querySelector("img")?.dataset.url === url) return;
  avatar.replaceChildren(initials.join(""));
  if (!url || !PICTURES.test(url)) return;
  const picture = create("img", { alt: "", referrerPolicy: "no-referrer", decoding: "async" });
  picture.dataset.url = url;
  picture.addEventListener("load", () => picture.classList.add("loaded"));
  picture.addEventListener("error", () => picture.remove());
  // The network names its sizes: "normal" has only 48 pixels.
  picture.src = url.replace(/_normal(?=\.\w+$)/, "_400x400");
  avatar.append(picture);
}

/** Says that the network did not confirm who owns the account. */
export function showDoubt(error) {
  byId("doubt").hidden = !error;
  byId("doubt").textContent =
    error?.code === "SOCIAL_NOT_FOUND"
      ? "The network has no account with this id, or has suspended it. Check the link before you rely on this address."
      : "The network does not say right now whose account this is.";
}

/** Shows the three figures. One that has changed since the last time lights up. */
export function showFigures(balance, coins) {
  const digits = Math.max(...AMOUNTS.map((id) => balance[id].length));
  document.querySelector(".figures").style.setProperty("--digits", digits);
  byId("less").textContent = balance.vault === "0.0000" ? "Less a fee of 2%" : "Of both, less 2%";
  const isUpdate = !byId("creator").classList.contains("loading");
  for (const id of AMOUNTS) {
    const element = byId(id);
    const hasChanged = element.textContent !== balance[id];
    element.textContent = balance[id];
    element.classList.toggle("zero", balance[id] === "0.0000");
    if (isUpdate && hasChanged) lightUp(element);
  }
  const count = new Set(coins.filter(({ collectable }) => collectable).map(({ mint }) => mint))
    .size;
  byId("waits-where").textContent =
    count === 0
      ? "Fees to collect"
      : `In the vault and on ${count === 1 ? "1 coin" : `${count} coins`}`;
}

function lightUp(element) {
  element.classList.remove("changed");
  // Reading the layout restarts the animation.
  void element.offsetWidth;
  element.classList.add("changed");
}
