import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";
import { createIsWithin } from "../contract/address-ranges.ts";
import { TRUSTED_BLOCK } from "../fairness/budget.ts";

/** The source of a request: the socket's address and the header `X-Forwarded-For`. */
export interface Origin {
  readonly remoteAddress: string | undefined;
  readonly forwardedFor: string | undefined;
}

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

/** All callers without a known address share one limit. */
export const UNKNOWN_CLIENT: Client = {
  address: "unknown",
  isTrusted: false,
  addressBlock: "unknown",
  visitorBlock: "unknown",
  isForwarded: false,
};
/** One household or server usually owns a whole /64 of IPv6. */
const IPV6_GROUP_BITS = 64;

/**
 * Identifies a caller by the socket's address or, behind a trusted proxy, by the right-most address
 * in `X-Forwarded-For` that is no trusted proxy. Calls `onForgottenProxy` when an unlisted private
 * address sends the header.
 */
export function createIdentifyClient(
  trustedProxies: readonly string[],
  trustedCallers: readonly string[] = [],
  onForgottenProxy: () => void = () => undefined,
): (origin: Origin) => Client {
  const isProxy = createIsWithin(trustedProxies);
  const isTrustedCaller = createIsWithin(trustedCallers);
  const isKnown = (address: string) => isProxy(address) || isTrustedCaller(address);

  function toVisitorBlock(origin: Origin): string | undefined {
    const sender = senderOf(origin, isKnown);
    const visitor = isKnown(sender) ? undefined : toGroup(sender);
    return visitor && toAddressBlock(visitor);
  }

  return (origin) => {
    const { remoteAddress = "", forwardedFor } = origin;
    const isForwarded = isProxy(remoteAddress);
    if (forwardedFor !== undefined && !isForwarded && !isPublic(remoteAddress)) onForgottenProxy();
    for (const sender of [senderOf(origin, isProxy), remoteAddress]) {
      const address = toGroup(sender);
      if (address === undefined) continue;
      const isTrusted = isTrustedCaller(sender);
      const addressBlock = isTrusted ? TRUSTED_BLOCK : toAddressBlock(address);
      const visitorBlock = isTrusted ? toVisitorBlock(origin) : addressBlock;
      return { address, isTrusted, addressBlock, visitorBlock, isForwarded };
    }
    return UNKNOWN_CLIENT;
  };
}

/**
 * Appends the socket's address to the header's list. Returns the right-most untrusted address, else
 * the left-most.
 */
function senderOf(
  { remoteAddress = "", forwardedFor }: Origin,
  isTrusted: (address: string) => boolean,
): string {
  if (forwardedFor === undefined || !isTrusted(remoteAddress)) return remoteAddress;
  let sender = remoteAddress;
  for (const hop of forwardedFor.split(",").reverse()) {
    sender = withoutPort(hop);
    if (!isTrusted(sender)) break;
  }
  return sender;
}

/** Whether an address may be on the internet. */
function isPublic(address: string): boolean {
  return !ipaddr.isValid(address) || ipaddr.process(address).range() === "unicast";
}

/**
 * Returns a caller's IPv4 /24 or IPv6 /48. Such a block usually has one owner, so its callers share
 * budgets.
 */
export function toAddressBlock(caller: string): string {
  if (isIPv4(caller)) return caller.replace(/\.\d+$/, ".0/24");
  if (!caller.includes(":")) return caller;
  return `${ipaddr.IPv6.networkAddressFromCIDR(caller.replace(/\/.*$/, "/48")).toString()}/48`;
}

/** Some proxies append the client's port: `192.0.2.1:5678`, `[2001:db8::1]:5678`. */
function withoutPort(text: string): string {
  const address = text.trim();
  return (
    /^\[([^\]]*)\](?::\d+)?$/.exec(address)?.[1] ?? /^([\d.]+):\d+$/.exec(address)?.[1] ?? address
  );
}

/**
 * Returns an IPv4 address, or the /64 of an IPv6 address without its zone; undefined for any other
 * text.
 */
function toGroup(text: string): string | undefined {
  const withoutZone = text.replace(/%.*$/, "");
  if (!ipaddr.isValid(withoutZone)) return undefined;
  const address = ipaddr.process(withoutZone);
  if (address.kind() === "ipv4") return address.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${withoutZone}/${IPV6_GROUP_BITS}`).toString()}/64`;
}
