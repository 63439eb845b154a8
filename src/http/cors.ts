/** Decides which pages may call the API. */
export interface Cors {
  /**
   * Whether a request with these headers is answered. `isOperation`: whether the request calls the
   * API.
   */
  isAllowed(headers: Headers, isOperation: boolean): boolean;
  /** The CORS headers of the response. */
  headers(headers: Headers): Readonly<Record<string, string>>;
}

const EXPOSED = {
  "access-control-expose-headers": "Retry-After, RateLimit, RateLimit-Policy, X-Request-Id",
};
const OPEN = { ...EXPOSED, "access-control-allow-origin": "*" };
const REFUSED = { vary: "Origin" };

/** Names that no other machine can take. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/**
 * The API is public and has no credentials, so by default any page may call it. With `origins`,
 * only pages of these origins may, and pages of the service's own origin: that of `publicUrl`, or
 * else the request's host if it is loopback. Any other host may be a name that a hostile page has
 * rebound to this machine. Requests of other pages are refused, because browsers send some requests
 * without a preflight. Links from other sites work.
 *
 * `useCORS` does not fit: it answers with the caller's origin instead of `*`, which caches would
 * have to keep apart, and it refuses nobody.
 */
export function createCors(
  origins: readonly string[] | undefined,
  publicUrl: URL | undefined,
): Cors {
  if (!origins) return { isAllowed: () => true, headers: () => OPEN };
  const originSet = new Set(origins);

  function isKnown(origin: string, host: string | null): boolean {
    if (originSet.has(origin)) return true;
    if (publicUrl) return origin === publicUrl.origin;
    const own = URL.parse(origin);
    return own !== null && own.host === host?.toLowerCase() && LOOPBACK.test(own.hostname);
  }

  return {
    isAllowed(headers, isOperation) {
      const origin = headers.get("origin");
      if (origin !== null) return isKnown(origin, headers.get("host"));
      return (
        !isOperation ||
        headers.get("sec-fetch-site") !== "cross-site" ||
        headers.get("sec-fetch-dest") === "document"
      );
    },
    headers(headers) {
      const origin = headers.get("origin");
      return origin !== null && isKnown(origin, headers.get("host"))
        ? { ...EXPOSED, ...REFUSED, "access-control-allow-origin": origin }
        : REFUSED;
    },
  };
}
