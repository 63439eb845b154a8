export type Cors = ReturnType<typeof createCors>;

const EXPOSED = {
  "access-control-expose-headers": "Retry-After, RateLimit, RateLimit-Policy, X-Request-Id",
};
const OPEN = { ...EXPOSED, "access-control-allow-origin": "*" };

/**
 * The API is public and has no credentials, so by default any page may call it. With `origins`,
 * only pages of these origins may, and those of `publicUrl`, the service's own. The request's host is
 * no proof: it may be a name that a hostile page has rebound to this machine. Requests of other pages
 * are refused, because browsers send some requests without a preflight. Links from other sites work.
 *
 * `useCORS` does not fit: it answers with the caller's origin instead of `*`, which caches would
 * have to keep apart, and it refuses nobody.
 */
export function createCors(origins: readonly string[] | undefined, publicUrl: URL | undefined) {
  /** Whether a request with these headers is answered, and the CORS headers of the response. */
  return (headers: Headers) => {
    if (!origins) return { isAllowed: true, headers: OPEN };
    const origin = headers.get("origin");
    const isListed = origin !== null && (origins.includes(origin) || origin === publicUrl?.origin);
    const isAllowed =
      isListed ||
      (origin === null &&
        (headers.get("sec-fetch-site") !== "cross-site" ||
          headers.get("sec-fetch-dest") === "document"));
    const shown = isListed && { ...EXPOSED, "access-control-allow-origin": origin };
    return { isAllowed, headers: { vary: "Origin", ...shown } };
  };
}
