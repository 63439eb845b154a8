export type Cors = ReturnType<typeof createCors>;

const EXPOSED = {
  "access-control-expose-headers": "Retry-After, RateLimit, RateLimit-Policy, X-Request-Id",
};
const OPEN = { ...EXPOSED, "access-control-allow-origin": "*" };

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
export function createCors(origins: readonly string[] | undefined, publicUrl: URL | undefined) {
  /**
   * Whether a request with these headers is answered, and the CORS headers of the response.
   * `isOperation`: whether the request calls the API.
   */
  return (headers: Headers, isOperation: boolean) => {
    if (!origins) return { isAllowed: true, headers: OPEN };
    const origin = headers.get("origin");
    const page = URL.parse(origin ?? "");
    const isOwn = publicUrl
      ? origin === publicUrl.origin
      : page?.host === headers.get("host")?.toLowerCase() && LOOPBACK.test(page?.hostname ?? "");
    const isListed = origin !== null && (origins.includes(origin) || isOwn);
    const isAllowed =
      isListed ||
      (origin === null &&
        (!isOperation ||
          headers.get("sec-fetch-site") !== "cross-site" ||
          headers.get("sec-fetch-dest") === "document"));
    const shown = isListed && { ...EXPOSED, "access-control-allow-origin": origin };
    return { isAllowed, headers: { vary: "Origin", ...shown } };
  };
}
