import ipaddr from "ipaddr.js";
import { createIsWithin, parseAddress, type Address } from "../contract/address-ranges.ts";
import { TRUSTED_BLOCK } from "../fairness/budget.ts";

/** The sender of a request. */
export interface Client {
  /** Identifies the caller: an IPv4 address, or an IPv6 /64. */
  readonly address: string;
  /**
   * Whether the operator trusts the caller, who then has no rate limit and no per-caller budget.
   */
  readonly isTrusted: boolean;
  /** The IPv4 /24 or IPv6 /48 of `address`, or TRUSTED_BLOCK for a trusted caller. */
  readonly addressBlock: string;
  /**
   * The block of a trusted caller's visitor, if `X-Forwarded-For` has one. For other callers:
   * `addressBlock`.
   */
  readonly visitorBlock: string | undefined;
  /** Whether a trusted proxy has sent the request, and knows more of it than the socket. */
  readonly isForwarded: boolean;
}

/** One household or server usually owns a whole /64 of IPv6. */
const IPV6_GROUP_BITS = 64;
const IPV6_BLOCK_BITS = 48;

/**
 * Identifies a caller by the socket's address or, behind a trusted proxy, by the right-most address
 * in `X-Forwarded-For` that is no trusted proxy. Calls `onForgottenProxy` when an unlisted private
 * address sends the header.
 */
export function createIdentifyClient(
  trustedProxies: readonly string[],
  trustedCallers: readonly string[],
  onForgottenProxy: () => void,
) {
  const isProxy = createIsWithin(trustedProxies);
  const isTrustedCaller = createIsWithin(trustedCallers);

  return (remoteAddress = "", forwardedFor?: string): Client => {
    const remote = parseAddress(remoteAddress);
    const isForwarded = isProxy(remote);
    if (forwardedFor !== undefined && !isForwarded && remote && remote.range() !== "unicast")
      onForgottenProxy();
    const hops = forwardedFor?.split(",") ?? [];
    // Strangers may send thousands of hops: this parses them from the nearest to the first outside.
    const findOutside = (isInside: typeof isProxy, first: typeof remote) => {
      let hop = first;
      while (hops.length > 0 && isInside(hop)) hop = parseHop(hops.pop()!);
      return hop;
    };
    const sender = findOutside(isProxy, remote);
    // All callers without a known address share one limit.
    const address = toGroup(sender) ?? toGroup(remote) ?? "unknown";
    const isTrusted = isTrustedCaller(sender);
    let visitor: string | undefined = address;
    if (isTrusted) {
      const isOwn = (hop: typeof remote) => isProxy(hop) || isTrustedCaller(hop);
      const hop = findOutside(isOwn, sender);
      visitor = isOwn(hop) ? undefined : toGroup(hop);
    }
    return {
      ...{ address, isTrusted, isForwarded },
      addressBlock: isTrusted ? TRUSTED_BLOCK : toAddressBlock(address),
      visitorBlock: visitor && toAddressBlock(visitor),
    };
  };
}

/**
 * Returns a caller's IPv4 /24 or IPv6 /48. Such a block usually has one owner, so its callers share
 * budgets.
 */
export function toAddressBlock(caller: string): string {
  if (!caller.includes(":")) return caller.replace(/\.\d+$/, ".0/24");
  return toRange(caller.replace(/\/.*$/, ""), IPV6_BLOCK_BITS);
}

/** Some proxies append the client's port: `192.0.2.1:5678`, `[2001:db8::1]:5678`. */
const parseHop = (hop: string) =>
  parseAddress(hop.trim().replace(/^(?:\[(.+)\]|([\d.]+))(?::\d+)?$/, "$1$2"));

/** Returns an IPv4 address, or the /64 of an IPv6 address. */
function toGroup(address: Address | undefined): string | undefined {
  const text = address?.toString();
  return text?.includes(":") ? toRange(text, IPV6_GROUP_BITS) : text;
}

/** The range of this prefix length that contains an IPv6 address. */
const toRange = (address: string, bits: number) =>
  `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/${bits}`).toString()}/${bits}`;
