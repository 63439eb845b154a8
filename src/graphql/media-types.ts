import Negotiator from "negotiator";

/** The media types of responses. A caller who prefers neither gets the first. */
export const RESPONSE_TYPES = [
  "application/json; charset=utf-8",
  "application/graphql-response+json; charset=utf-8",
] as const;

export const MUST_ACCEPT_JSON =
  "`Accept` must allow application/json or application/graphql-response+json.";

export type ResponseType = (typeof RESPONSE_TYPES)[number];

/**
 * Browsers send about 150 characters. A header has room for thousands of media ranges, which take
 * time to parse.
 */
const MAX_ACCEPT_LENGTH = 500;

/**
 * The offered type that `Accept` prefers; undefined if it allows none. Ignores a long header (RFC
 * 9110, 12.5.1).
 */
export function preferredType<Type extends string>(
  accept: string | null | undefined,
  types: readonly Type[],
): Type | undefined {
  const isRead = accept && accept.length <= MAX_ACCEPT_LENGTH;
  const negotiator = new Negotiator({ headers: { accept: isRead ? accept : "*/*" } });
  const name = negotiator.mediaType([...types]);
  return types.find((type) => type === name);
}
