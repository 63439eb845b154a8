import { unescape } from "node:querystring";
import { isObject, parseJson } from "../contract/parse-json.ts";

const MAX_LENGTH = 120;
/** Longer words may be keys, tokens or transactions. */
const LONG_WORD = /[\w+/=-]{20,}/g;
/** A shorter part of a URL may be a part of any word. */
const LEAST_SECRET = 3;

/**
 * Returns what the body of a failed answer says, in quotes, for an operator: one short line without
 * markup and without `secrets`. Empty if it says nothing.
 */
export function ownWordsOf(body: string, secrets: readonly string[]): string {
  let text = textOf(parseJson(body)) ?? body.replace(/<(style|script)[^]*?<\/\1>|<[^>]*>/g, " ");
  for (const secret of secrets.filter(({ length }) => length >= LEAST_SECRET))
    text = text.replaceAll(secret, "…");
  text = text
    .replace(LONG_WORD, "…")
    .replace(/[^\p{L}\p{N}\p{P}\p{S}]+/gu, " ")
    .trim();
  if (!/\p{L}/u.test(text)) return "";
  return `"${text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text}"`;
}

/** The parts of a URL that may be secret. */
export function secretsIn({ pathname, searchParams, username, password }: URL): string[] {
  const parts = [...pathname.split("/"), ...searchParams.values(), username, password];
  return parts.flatMap((part) => [part, unescape(part)]);
}

/** The message in the JSON of an error: JSON-RPC's, a problem's, or a proxy's. */
function textOf(body: unknown): string | undefined {
  if (typeof body === "string") return body;
  if (!isObject(body)) return body === undefined ? undefined : "";
  const { error, message, detail, title } = body;
  return textOf(error ?? message ?? detail ?? title ?? "");
}
