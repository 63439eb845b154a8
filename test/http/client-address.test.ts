import { describe, expect, it } from "vitest";
import { createIdentifyClient, toAddressBlock } from "../../src/http/client-address.ts";

const identify = (proxies: string[], callers: string[] = []) =>
  createIdentifyClient(proxies, callers, () => undefined);
const through = (trusted: string[], remoteAddress: string | undefined, forwardedFor?: string) =>
  identify(trusted)(remoteAddress, forwardedFor).address;

describe("a caller is trusted", () => {
  const isTrusted = (callers: string[], forwardedFor: string) =>
    identify(["127.0.0.1"], callers)("127.0.0.1", forwardedFor).isTrusted;

  it("if its address is listed or in a listed range, but not its whole IPv6 /64", () => {
    const callers = ["192.0.2.7", "198.51.100.0/28", "2001:db8::5"];
    const addresses = [
      "192.0.2.7",
      "::ffff:192.0.2.7",
      "198.51.100.15",
      "2001:DB8:0::5",
      "[2001:db8::5]:443",
    ];
    for (const address of addresses) expect(isTrusted(callers, address), address).toBe(true);
    for (const address of [
      "192.0.2.8",
      "198.51.100.16",
      "2001:db8::6",
      "nonsense",
      "192.0.2.7, 192.0.2.8",
    ])
      expect(isTrusted(callers, address), address).toBe(false);
    expect(isTrusted([], "192.0.2.7")).toBe(false);
  });
});

describe("a caller is identified", () => {
  it("by the socket's address, whatever an untrusted client sends in X-Forwarded-For", () => {
    expect(through([], "192.0.2.1", "198.51.100.7")).toBe("192.0.2.1");
    expect(through(["10.0.0.0/8"], "192.0.2.1", "198.51.100.7")).toBe("192.0.2.1");
  });

  it("behind a trusted proxy, by the right-most address that is not a trusted proxy", () => {
    expect(through(["10.0.0.0/8"], "10.0.0.1", "198.51.100.7")).toBe("198.51.100.7");
    expect(through(["10.0.0.0/8"], "10.0.0.1", "203.0.113.9, 198.51.100.7, 10.0.0.2")).toBe(
      "198.51.100.7",
    );
    expect(through(["10.0.0.0/8"], "::ffff:10.0.0.1", "198.51.100.7")).toBe("198.51.100.7");
    expect(through(["10.0.0.0/8"], "10.0.0.1")).toBe("10.0.0.1");
    expect(through(["10.0.0.0/8"], "10.0.0.1", "10.0.0.3, 10.0.0.2")).toBe("10.0.0.3");
    expect(through(["fe80::/10"], "fe80::1%eth0", "198.51.100.7")).toBe("198.51.100.7");
  });

  it("by the socket's address when the header is not an address", () => {
    for (const header of ["", "198.51.100.7:port", "[198.51.100.7", "198.51.100.7, nonsense"])
      expect(through(["10.0.0.1"], "10.0.0.1", header)).toBe("10.0.0.1");
  });

  it("by an address with a port, as some proxies send it", () => {
    expect(through(["10.0.0.0/8"], "10.0.0.1", "198.51.100.7:5678")).toBe("198.51.100.7");
    expect(through(["10.0.0.0/8"], "10.0.0.1", "[2001:db8:1:2::1]:5678")).toBe("2001:db8:1:2::/64");
    expect(through(["10.0.0.0/8"], "10.0.0.1", "[2001:db8:1:2::1]")).toBe("2001:db8:1:2::/64");
    expect(through(["10.0.0.0/8"], "10.0.0.1", "203.0.113.9, 198.51.100.7:5678, 10.0.0.2:80")).toBe(
      "198.51.100.7",
    );
  });

  it("by the /64 of an IPv6 address, and by the IPv4 address of an IPv4-mapped one", () => {
    expect(through([], "2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1:2::/64");
    expect(through([], "2001:db8:1:2::1")).toBe("2001:db8:1:2::/64");
    expect(through([], "2001:db8:1:3::1")).toBe("2001:db8:1:3::/64");
    expect(through([], "::ffff:192.0.2.1")).toBe("192.0.2.1");
    expect(through([], "::ffff:192.0.2.1")).not.toBe(through([], "::ffff:192.0.2.2"));
    expect(through([], "fe80::1%eth0")).toBe("fe80::/64");
  });

  it("as unknown without an address: all such callers share one limit", () => {
    expect(through([], undefined)).toBe("unknown");
    expect(through([], "not an address")).toBe("unknown");
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

describe("a caller's address block", () => {
  it("is the /24 of an IPv4 address and the /48 of an IPv6 address, and unknown callers share one", () => {
    const blockOf = (address: string | undefined) => toAddressBlock(through([], address));
    expect(blockOf("192.0.2.1")).toBe("192.0.2.0/24");
    expect(blockOf("::ffff:192.0.2.255")).toBe("192.0.2.0/24");
    expect(blockOf("192.0.20.1")).toBe("192.0.20.0/24");
    expect(blockOf("2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1::/48");
    expect(blockOf("2001:db8:1:ffff::")).toBe("2001:db8:1::/48");
    expect(blockOf("2001:db8:2::1")).toBe("2001:db8:2::/48");
    expect(blockOf(undefined)).toBe("unknown");
  });
});
