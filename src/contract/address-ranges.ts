import { BlockList, isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** The prefix length of ::ffff:0:0/96, the range of all IPv4-mapped addresses. */
const IPV4_MAPPED_BITS = 96;

/**
 * Whether a text is an address or a CIDR range. False for ranges that contain all IPv4 or all IPv6
 * addresses.
 */
export function isAddressRange(text: string): boolean {
  const [address = "", bits] = text.split("/");
  if (isIP(address) === 0 || address.includes("%")) return false;
  if (bits === undefined) return true;
  if (!ipaddr.isValidCIDR(text)) return false;
  return Number(bits) > (/^::ffff:/i.test(address) ? IPV4_MAPPED_BITS : 0);
}

/**
 * Returns a function that tests whether a text is an address in these ranges. IPv4-mapped addresses
 * count as IPv4.
 */
export function createIsWithin(ranges: readonly string[]): (address: string) => boolean {
  if (ranges.length === 0) return () => false;
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    if (bits === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(bits), familyOf(address));
  }
  return (address) => isIP(address) !== 0 && list.check(address, familyOf(address));
}

/** Whether two ranges have an address in common: then one contains the other. */
export function overlap(a: string, b: string): boolean {
  const contains = (outer: string, inner: string) =>
    createIsWithin([outer])(inner.replace(/\/.*$/, ""));
  return contains(a, b) || contains(b, a);
}

const familyOf = (address: string) => (isIP(address) === 4 ? "ipv4" : "ipv6");
