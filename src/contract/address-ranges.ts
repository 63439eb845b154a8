import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export type Address = ReturnType<typeof ipaddr.process>;

/**
 * Whether a text is an address or a CIDR range. False for ranges that contain all IPv4 or all IPv6
 * addresses, and for ranges of IPv4-mapped IPv6.
 */
export function isAddressRange(text: string): boolean {
  const [address = "", bits] = text.split("/");
  if (isIP(address) === 0 || address.includes("%")) return false;
  if (bits === undefined) return true;
  return ipaddr.isValidCIDR(text) && Number(bits) > 0 && !/^::ffff:/i.test(address);
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
  if (range.includes("/")) return ipaddr.parseCIDR(range);
  const address = ipaddr.process(range);
  return [address, 8 * address.toByteArray().length];
}

/** Whether two ranges have an address in common: then one contains the other. */
export function overlap(a: string, b: string): boolean {
  const contains = (outer: string, inner: string) =>
    createIsWithin([outer])(parseAddress(inner.replace(/\/.*$/, "")));
  return contains(a, b) || contains(b, a);
}
