import { hash } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import {
  deriveAddress,
  findAddress,
  isOnCurve,
} from "../../../src/chain/primitives/derive-address.ts";

const PROGRAM = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
const program = new PublicKey(PROGRAM);
const social = Buffer.from("social");

it("an address and its bump are what web3.js derives, for many ids and keys", () => {
  const bumps = new Set<number>();
  for (let i = 0; i < 60; i++) {
    const key = hash("sha256", `key ${i}`, "buffer");
    const id = Buffer.from(key.readBigUInt64LE().toString());
    const owner = new PublicKey(hash("sha256", key, "buffer"));
    for (const [seeds, of] of [
      [[social, id], program],
      [[Buffer.from("creator-vault"), key], program],
      [[key, key, key], owner],
    ] as const) {
      const [expected, bump] = PublicKey.findProgramAddressSync([...seeds], of);
      expect(findAddress(seeds, of.toBase58())).toEqual({ address: expected.toBase58(), bump });
      bumps.add(bump);
    }
  }
  // A bump that is one lower is half as frequent.
  for (let bump = 255; bump > 251; bump--) expect(bumps).toContain(bump);
});

it("seeds may be empty, absent, or up to 32 bytes long, as in web3.js", () => {
  const seeds = [
    [],
    [Buffer.alloc(0)],
    [Buffer.alloc(32, 1)],
    [Buffer.alloc(0), social, Buffer.alloc(0)],
  ];
  for (const each of seeds)
    expect(deriveAddress(each, PROGRAM)).toBe(
      PublicKey.findProgramAddressSync(each, program)[0].toBase58(),
    );
});

describe("whether bytes are a point of ed25519", () => {
  const P = 2n ** 255n - 19n;
  const SIGN = 2n ** 255n;
  /** 32 bytes, the least significant first. */
  const toBytes = (value: bigint) =>
    Buffer.from(value.toString(16).padStart(64, "0"), "hex").reverse();

  it("is what web3.js decides for hundreds of hashes", () => {
    const hashes = Array.from({ length: 500 }, (_, i) => hash("sha256", `point ${i}`, "buffer"));
    expect(hashes.map(isOnCurve)).toEqual(hashes.map((each) => PublicKey.isOnCurve(each)));
    // Half of them are points.
    expect(hashes.filter(isOnCurve).length / hashes.length).toBeCloseTo(0.5, 1);
  });

  it.each([
    ["y = 1, where x is 0", 1n, true],
    ["y = 1 with a sign, which 0 has not", 1n + SIGN, false],
    ["y = p - 1, where x is 0", P - 1n, true],
    ["y = p - 1 with a sign", P - 1n + SIGN, false],
    ["y = 0", 0n, true],
    ["y = 0 with a sign", SIGN, true],
    ["y = 2", 2n, false],
    ["y = p, another spelling of 0", P, false],
    ["y = p + 1, another spelling of 1", P + 1n, false],
    ["y = 2^255 - 1", SIGN - 1n, false],
    ["y = 2^255 - 1 with a sign", SIGN + SIGN - 1n, false],
  ])("is right for %s", (_name, value, expected) => {
    expect(isOnCurve(toBytes(value))).toBe(expected);
    expect(PublicKey.isOnCurve(toBytes(value))).toBe(expected);
  });
});
