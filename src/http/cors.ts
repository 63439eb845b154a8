/** What a browser says of a request, and what that is compared with. */
export interface PageRequest {
  /** Absent unless a browser sends the request for a page. */
  readonly pageOrigin?: string | null | undefined;
  /** The header `Sec-Fetch-Site`: how the page is related to the service. */
  readonly fetchSite?: string | null | undefined;
  /** The header `Sec-Fetch-Dest`: what the response is for. */
  readonly fetchDestination?: string | null | undefined;
  /** The header `Host` as received. */
  readonly host?: string | undefined;
}

/** Decides which pages may call the API. */
export interface Cors {
  /** Whether a request of this page is answered; `isOperation`: it calls the API. */
  isAllowed(request: PageRequest, isOperation: boolean): boolean;
  /** The response headers for a request of this page. */
  headers(request: PageRequest): Readonly<Record<string, string>>;
}

const EXPOSED = { "access-control-expose-headers": "Retry-After, RateLimit, RateLimit-Policy, X-Request-Id" };
const OPEN = { ...EXPOSED, "access-control-allow-origin": "*" };
const REFUSED = { vary: "Origin" };

/**
 * The API is public and has no credentials, so by default any page may call it and read its responses. With
 * `origins`, only their pages and the service's may: those at `publicUrl`, else at the request's host. Others are
 * refused, not only kept from reading: a browser sends some POSTs without asking first, and the GET of an image
 * without its page's origin. Links from other sites may be opened.
 */
export function createCors(origins: readonly string[] | undefined, publicUrl: URL | undefined): Cors {
  if (!origins) return { isAllowed: () => true, headers: () => OPEN };
  const listed = new Set(origins);

  function isOwn(pageOrigin: string, host: string | undefined): boolean {
    if (publicUrl) return pageOrigin === publicUrl.origin;
    return host !== undefined && URL.parse(pageOrigin)?.host === host.toLowerCase();
  }
  const isKnown = (pageOrigin: string, host: string | undefined) =>
    listed.has(pageOrigin) || isOwn(pageOrigin, host);

  return {
    isAllowed({ pageOrigin, host, fetchSite, fetchDestination }, isOperation) {
      if (typeof pageOrigin === "string") return isKnown(pageOrigin, host);
      return !isOperation || fetchSite !== "cross-site" || fetchDestination === "document";
    },
    headers: ({ pageOrigin, host }) =>
      typeof pageOrigin === "string" && isKnown(pageOrigin, host)
        ? { ...EXPOSED, ...REFUSED, "access-control-allow-origin": pageOrigin }
        : REFUSED,
  };
}
