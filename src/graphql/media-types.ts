import Negotiator from "negotiator";
import { createLruCache } from "../store/lru-cache.ts";

export const EVENT_STREAM = "text/event-stream";
/** The media types of results. A caller who prefers neither gets the first. */
export const RESULT_TYPES = [
  "application/json; charset=utf-8",
  "application/graphql-response+json; charset=utf-8",
];

/** The media types that a caller accepts. */
export interface Accepts {
  /** That of a result, without a charset; undefined if the caller accepts neither. */
  readonly result: string | undefined;
  readonly events: boolean;
}

/** Apollo's own link asks for a multipart response. */
export const MUST_ACCEPT =
  "`Accept` must allow application/json or application/graphql-response+json; for a subscription, text/event-stream: it is a stream of server-sent events. Apollo Client needs a link that uses graphql-sse; in urql, set `fetchSubscriptions`.";

/**
 * Browsers send about 150 characters. A header has room for thousands of media ranges, which take
 * time to parse.
 */
const MAX_ACCEPT_LENGTH = 500;
/** Clients send few different headers, and each takes time to parse. */
const MAX_CACHED = 1_000;

/**
 * The offered types that `Accept` allows, the preferred first. Ignores a long header (RFC 9110,
 * 12.5.1).
 */
export function acceptedTypes(
  accept: string | null | undefined,
  types: readonly string[],
): readonly string[] {
  const negotiator = new Negotiator({ headers: { accept: toShort(accept) } });
  return negotiator.mediaTypes([...types]);
}

const toShort = (accept: string | null | undefined): string =>
  accept && accept.length <= MAX_ACCEPT_LENGTH ? accept : "*/*";

const cache = createLruCache<string, Accepts>(MAX_CACHED, {
  memoMethod(accept) {
    const types = acceptedTypes(accept, [...RESULT_TYPES, EVENT_STREAM]);
    return {
      result: types.find((type) => type !== EVENT_STREAM)?.replace(/;.*/, ""),
      events: types.includes(EVENT_STREAM),
    };
  },
});

/** Reads a header `Accept` with its quality values, which Yoga ignores. */
export const readAccept = (accept: string | null): Accepts => cache.memo(toShort(accept));
