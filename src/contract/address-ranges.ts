import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export type Address = ReturnType<typeof ipaddr.process>;

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

/** Parses an address. An IPv4-mapped one counts as IPv4. Returns undefined for any other text. */
export function parseAddress(text: string): Address | undefined {
  try {
    return ipaddr.process(text.replace(/%.*$/, ""));
  } catch {
    return undefined;
  }
}

/**
 * Returns a function that tests whether an address is in these ranges. `BlockList` would make an
 * object of C++ for each address.
 */
export function createIsWithin(ranges: readonly string[]) {
  const networks = ranges.map(toNetwork);
  return (address: Address | undefined): boolean =>
    address !== undefined && ipaddr.subnetMatch(address, { inside: networks }, "") === "inside";
}

function toNetwork(range: string): [Address, number] {
  const [text = "", bits] = range.split("/");
  const address = ipaddr.process(text);
  if (bits === undefined) return [address, 8 * address.toByteArray().length];
  const isMapped = text.includes(":") && address.kind() === "ipv4";
  return [address, Number(bits) - (isMapped ? IPV4_MAPPED_BITS : 0)];
}

/** Whether two ranges have an address in common: then one contains the other. */
export function overlap(a: string, b: string): boolean {
  const contains = (outer: string, inner: string) =>
    createIsWithin([outer])(parseAddress(inner.replace(/\/.*$/, "")));
  return contains(a, b) || contains(b, a);
}
