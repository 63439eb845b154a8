const NETWORK = /^(?:www\.|mobile\.|m\.)?(?:x|twitter)\.com$/i;
const MINT = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;

/** A URL with or without its scheme; undefined for anything else. */
function toUrl(text) {
  if (!/[./]/.test(text)) return undefined;
  return URL.parse(/^https?:\/\//i.test(text) ? text : `https://${text}`) ?? undefined;
}

/** More digits than a handle may have. */
const ONLY_ID = /^\d{16,20}$/;
const MAYBE_ID = /^\d{1,15}$/;

/**
 * Reads a handle, an @handle, an account's id, the address of a profile at the network, or of this
 * page. Returns the account and its coins, or undefined for the address of anything else.
 * `mayBeId`: the handle may also have been meant as an id.
 */
export function readAccount(text) {
  const trimmed = text.trim();
  const url = toUrl(trimmed);
  if (ONLY_ID.test(trimmed)) return { socialId: trimmed, mints: [] };
  if (!url)
    return { handle: trimmed.replace(/^@/, ""), mints: [], mayBeId: MAYBE_ID.test(trimmed) };
  if (NETWORK.test(url.hostname)) {
    const [handle] = url.pathname.split("/").filter(Boolean);
    return handle && { handle: handle.replace(/^@/, ""), mints: [] };
  }
  return url.host === location.host ? readParameters(url.searchParams) : undefined;
}

/**
 * Reads a mint, or the address of a page about the coin. Returns undefined if there is no mint in
 * it.
 */
export function readMint(text) {
  const trimmed = text.trim();
  if (MINT.test(trimmed)) return trimmed;
  return toUrl(trimmed)
    ?.pathname.split("/")
    .find((part) => MINT.test(part));
}

/** The account and the coins that the page's URL names; undefined on the start page. */
export function readParameters(parameters) {
  const mints = [...new Set(parameters.getAll("mint").map((text) => readMint(text) ?? text))];
  const socialId = parameters.get("socialId");
  if (socialId !== null) return { socialId: socialId.trim(), mints };
  const handle = parameters.get("handle");
  if (handle === null) return undefined;
  return { handle: readAccount(handle)?.handle ?? handle, mints };
}

/** The page's URL for an account and its coins. */
export function toPageUrl({ handle, socialId, mints }) {
  const parameters = new URLSearchParams(socialId === undefined ? { handle } : { socialId });
  for (const mint of mints) parameters.append("mint", mint);
  return `${location.origin}${location.pathname}?${parameters}`;
}
