import { createLruCache } from "../store/lru-cache.ts";
import type { IncomingMessage } from "node:http";
import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";
import proxyAddr from "proxy-addr";

/** The source of a request: the socket's address and the header `X-Forwarded-For`. */
export interface Origin {
  readonly remoteAddress: string | undefined;
  readonly forwardedFor: string | undefined;
}

/** The sender of a request. */
export interface Client {
  /** Identifies the caller: an IPv4 address, or an IPv6 /64. */
  readonly address: string;
  /** Whether the operator trusts the caller, who then has no rate limit and no per-caller budget. */
  readonly isTrusted: boolean;
  /** The person whom a trusted caller names in `X-Forwarded-For`, or undefined. For other callers: `address`. */
  readonly visitor: string | undefined;
}

/** All callers without a known address share one limit. */
const UNKNOWN: Client = { address: "unknown", isTrusted: false, visitor: "unknown" };
/** One household or server usually owns a whole /64 of IPv6. */
const IPV6_GROUP_BITS = 64;
/** For how many addresses the cache remembers whether they are trusted. Proxies have few addresses. */
const MAX_ADDRESSES = 1_000;

/**
 * Identifies callers: by the socket's address, or, if that is a trusted proxy, by the right-most valid address in
 * `X-Forwarded-For` that is not a trusted proxy. IPv6 addresses are grouped by /64; IPv4-mapped ones count as IPv4.
 * Calls `onForgottenProxy` once, when the header arrives from a private address that TRUST_PROXY lacks.
 */
export function createIdentifyClient(
  trustedProxies: readonly string[],
  trustedCallers: readonly string[] = [],
  onForgottenProxy: () => void = () => undefined,
): (origin: Origin) => Client {
  const isProxy = proxyAddr.compile([...trustedProxies]);
  const isTrustedProxy = memoized(isProxy);
  const isTrustedCaller =
    trustedCallers.length > 0 ? memoized(proxyAddr.compile([...trustedCallers])) : () => false;

  let hasForgottenProxy = false;

  function toClient(address: string, origin: Origin): Client | undefined {
    const group = toGroup(address);
    if (group === undefined) return undefined;
    const isTrusted = isTrustedCaller(address);
    return { address: group, isTrusted, visitor: isTrusted ? toVisitor(origin) : group };
  }

  function toVisitor({ remoteAddress, forwardedFor }: Origin): string | undefined {
    if (remoteAddress === undefined || forwardedFor === undefined) return undefined;
    const isKnown = (address: string, distance: number) =>
      isProxy(address, distance) || isTrustedCaller(address);
    const visitor = proxyAddr(toRequest(remoteAddress, forwardedFor), isKnown);
    return isKnown(visitor, 0) ? undefined : toGroup(visitor);
  }

  return (origin) => {
    const { remoteAddress, forwardedFor } = origin;
    if (remoteAddress === undefined) return UNKNOWN;
    if (forwardedFor === undefined || !isTrustedProxy(remoteAddress)) {
      if (forwardedFor !== undefined && !hasForgottenProxy && !isPublic(remoteAddress)) {
        hasForgottenProxy = true;
        onForgottenProxy();
      }
      return toClient(remoteAddress, origin) ?? UNKNOWN;
    }
    const client = forwardedFor.includes(",")
      ? proxyAddr(toRequest(remoteAddress, forwardedFor), isProxy)
      : withoutPort(forwardedFor);
    return toClient(client, origin) ?? toClient(remoteAddress, origin) ?? UNKNOWN;
  };
}

/** Whether an address may be on the internet. */
function isPublic(address: string): boolean {
  return !ipaddr.isValid(address) || ipaddr.process(address).range() === "unicast";
}

function memoized(contains: (address: string, distance: number) => boolean): (address: string) => boolean {
  const cache = createLruCache<string, boolean>(MAX_ADDRESSES, {
    memoMethod: (address) => contains(address, 0),
  });
  return (address) => cache.memo(address);
}

/** Returns a caller's IPv4 /24 or IPv6 /48. Such a block usually has one owner, so its callers share budgets. */
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
