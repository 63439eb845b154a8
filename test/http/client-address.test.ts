import { describe, expect, it } from "vitest";
import { createIdentifyClient, toAddressBlock } from "../../src/http/client-address.ts";

const identify = (proxies: string[], callers: string[] = []) =>
  createIdentifyClient(proxies, callers, () => undefined);
const through = (trusted: string[], remoteAddress: string | undefined, forwardedFor?: string) =>
  identify(trusted)(remoteAddress, forwardedFor).address;

describe("a caller is trusted if its address is listed or in a listed range, but not its whole IPv6 /64:", () => {
  const callers = ["192.0.2.7", "198.51.100.0/28", "2001:db8::5"];
  const isTrusted = (forwardedFor: string, listed = callers) =>
    identify(["127.0.0.1"], listed)("127.0.0.1", forwardedFor).isTrusted;

  it.each([
    ["192.0.2.7", true],
    ["::ffff:192.0.2.7", true],
    ["198.51.100.15", true],
    ["2001:DB8:0::5", true],
    ["[2001:db8::5]:443", true],
    ["192.0.2.8", false],
    ["198.51.100.16", false],
    ["2001:db8::6", false],
    ["nonsense", false],
    ["192.0.2.7, 192.0.2.8", false],
  ])("%s: %s", (address, expected) => {
    expect(isTrusted(address)).toBe(expected);
    expect(isTrusted(address, [])).toBe(false);
  });
});

describe("a caller is identified", () => {
  const OWN = "198.51.100.7";

  it("by the socket's address, whatever an untrusted client sends in X-Forwarded-For", () => {
    for (const trusted of [[], ["10.0.0.0/8"]])
      expect(through(trusted, "192.0.2.1", OWN)).toBe("192.0.2.1");
  });

  it.each([
    ["10.0.0.1", OWN, OWN],
    ["10.0.0.1", `203.0.113.9, ${OWN}, 10.0.0.2`, OWN],
    ["10.0.0.1", `203.0.113.9, ${OWN}:5678, 10.0.0.2:80`, OWN],
    ["10.0.0.1", `${OWN}:5678`, OWN],
    ["10.0.0.1", "[2001:db8:1:2::1]:5678", "2001:db8:1:2::/64"],
    ["10.0.0.1", "[2001:db8:1:2::1]", "2001:db8:1:2::/64"],
    ["::ffff:10.0.0.1", OWN, OWN],
    ["fe80::1%eth0", OWN, OWN],
    ["10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["10.0.0.1", undefined, "10.0.0.1"],
    ["10.0.0.1", "", "10.0.0.1"],
    ["10.0.0.1", `${OWN}:port`, "10.0.0.1"],
    ["10.0.0.1", `[${OWN}`, "10.0.0.1"],
    ["10.0.0.1", `${OWN}, nonsense`, "10.0.0.1"],
  ])(
    "behind the trusted proxy %s by the right-most address that is none, perhaps with a port: %s is %s",
    (proxy, header, expected) => {
      expect(through(["10.0.0.0/8", "fe80::/10"], proxy, header)).toBe(expected);
    },
  );

  it.each([
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1::/48"],
    ["2001:db8:1:3::1", "2001:db8:1:3::/64", "2001:db8:1::/48"],
    ["2001:db8:2::1", "2001:db8:2::/64", "2001:db8:2::/48"],
    ["fe80::1%eth0", "fe80::/64", "fe80::/48"],
    ["192.0.2.1", "192.0.2.1", "192.0.2.0/24"],
    ["::ffff:192.0.20.255", "192.0.20.255", "192.0.20.0/24"],
    // All such callers share one limit.
    [undefined, "unknown", "unknown"],
    ["not an address", "unknown", "unknown"],
  ])("at %s as %s, in the block %s", (socket, address, block) => {
    expect(through([], socket)).toBe(address);
    expect(toAddressBlock(address)).toBe(block);
  });
});

describe("a proxy that is not in TRUST_PROXY", () => {
  const warnings = (remoteAddress: string, forwardedFor?: string, trusted: string[] = []) => {
    let count = 0;
    createIdentifyClient(trusted, [], () => count++)(remoteAddress, forwardedFor);
    return count;
  };

  it.each(["10.1.2.3", "127.0.0.1", "::1", "fd00::1", "::ffff:192.168.0.1", "100.64.0.1"])(
    "is noticed at the private address %s",
    (address) => {
      expect(warnings(address, "203.0.113.9")).toBe(1);
    },
  );

  it("is none at a public address, or without the header", () => {
    expect(warnings("198.51.200.1", "203.0.113.9")).toBe(0);
    expect(warnings("10.1.2.3")).toBe(0);
    expect(warnings("10.1.2.3", "203.0.113.9", ["10.0.0.0/8"])).toBe(0);
  });
});
