import type { IncomingMessage } from "node:http";
import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";
import { LRUCache } from "lru-cache";
import proxyAddr from "proxy-addr";

/** The source of a request: the socket's address and the header `X-Forwarded-For`. */
export interface Origin {
  readonly remoteAddress: string | undefined;
  readonly forwardedFor: string | null;
}

/** All callers without a known address share one limit. */
const UNKNOWN = "unknown";
/** One household or server usually owns a whole /64 of IPv6. */
const IPV6_GROUP_BITS = 64;
/** How many socket addresses are cached as trusted or not. Proxies have few addresses. */
const MAX_SOCKET_ADDRESSES = 1_000;

/**
 * Identifies callers for rate limiting: by the socket's address, or, if that is a trusted proxy, by the
 * right-most address in `X-Forwarded-For` that is not a trusted proxy. If that address is invalid, uses the
 * socket's. IPv6 addresses are grouped by /64; IPv4-mapped IPv6 addresses count as IPv4.
 */
export function createClientAddress(trustedProxies: readonly string[]): (origin: Origin) => string {
  const isTrusted = proxyAddr.compile([...trustedProxies]);
  const trustedSockets = new LRUCache<string, boolean, undefined>({
    max: MAX_SOCKET_ADDRESSES,
    memoMethod: (address) => isTrusted(address, 0),
  });

  return ({ remoteAddress, forwardedFor }) => {
    if (remoteAddress === undefined) return UNKNOWN;
    if (forwardedFor === null || !trustedSockets.memo(remoteAddress))
      return toGroup(remoteAddress) ?? UNKNOWN;
    const client = forwardedFor.includes(",")
      ? proxyAddr(toRequest(remoteAddress, forwardedFor), isTrusted)
      : withoutPort(forwardedFor);
    return toGroup(client) ?? toGroup(remoteAddress) ?? UNKNOWN;
  };
}

/**
 * The address block (IPv4 /24, IPv6 /48) of a caller as {@link createClientAddress} identifies it. A block usually
 * has one owner, so its callers share budgets.
 */
export function toAddressBlock(caller: string): string {
  if (isIPv4(caller)) return caller.replace(/\.\d+$/, ".0/24");
  if (!caller.includes(":")) return caller;
  return `${ipaddr.IPv6.networkAddressFromCIDR(caller.replace(/\/.*$/, "/48")).toString()}/48`;
}

/** A request with only the fields that proxy-addr reads. */
function toRequest(remoteAddress: string, forwardedFor: string): IncomingMessage {
  const addresses = forwardedFor.split(",").map(withoutPort).join();
  const request = { socket: { remoteAddress }, headers: { "x-forwarded-for": addresses } };
  return request as unknown as IncomingMessage;
}

/** Some proxies append the client's port: `192.0.2.1:5678`, `[2001:db8::1]:5678`. */
function withoutPort(text: string): string {
  const address = text.trim();
  return /^\[([^\]]*)\](?::\d+)?$/.exec(address)?.[1] ?? /^([\d.]+):\d+$/.exec(address)?.[1] ?? address;
}

function toGroup(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!ipaddr.isValid(text)) return undefined;
  const address = ipaddr.process(text);
  if (address.kind() === "ipv4") return address.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${withoutZone(address)}/${IPV6_GROUP_BITS}`).toString()}/64`;
}

function withoutZone(address: ipaddr.IPv4 | ipaddr.IPv6): string {
  return address.toString().replace(/%.*$/, "");
}
