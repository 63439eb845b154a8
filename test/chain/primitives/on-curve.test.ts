import { createHash } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { isOnCurve, isSquare } from "../../../src/chain/primitives/derive-address.ts";

const P = 2n ** 255n - 19n;
const SIGN = 2n ** 255n;

const times = <T>(count: number, make: (i: number) => T) =>
  Array.from({ length: count }, (_, i) => make(i));

/** 32 bytes, the least significant first. */
const toBytes = (value: bigint) =>
  Buffer.from(value.toString(16).padStart(64, "0"), "hex").reverse();
const sha256 = (text: string) => createHash("sha256").update(text).digest();

/** The inputs for which web3.js decides otherwise. */
const differing = (inputs: readonly Buffer[]) =>
  inputs
    .filter((bytes) => isOnCurve(bytes) !== PublicKey.isOnCurve(bytes))
    .map((bytes) => bytes.toString("hex"));

describe("whether bytes are a point of ed25519", () => {
  it("is what web3.js decides for hundreds of hashes", () => {
    const hashes = times(500, (i) => sha256(`point ${i}`));
    expect(differing(hashes)).toEqual([]);
    // Half of them are points.
    expect(hashes.filter(isOnCurve).length / hashes.length).toBeCloseTo(0.5, 1);
  });

  it.each([
    ["the smallest y", 0n, 50n],
    ["y below and above the prime, up to 255 bits", P - 50n, SIGN],
  ])("is what web3.js decides for %s, with both signs of x", (_name, from, to) => {
    const ys = times(Number(to - from), (i) => from + BigInt(i));
    expect(differing(ys.flatMap((y) => [toBytes(y), toBytes(y + SIGN)]))).toEqual([]);
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

  it("is what web3.js decides for y with one bit set or cleared", () => {
    const powers = times(256, (i) => 2n ** BigInt(i));
    const inputs = powers.flatMap((bit) => [bit, 2n * SIGN - 1n - bit]).map(toBytes);
    expect(differing(inputs)).toEqual([]);
  });
});

describe("whether a number is a square modulo the prime", () => {
  it("is true for squares, and false for twice a square", () => {
    for (let i = 0; i < 200; i++) {
      const root = BigInt(`0x${sha256(`root ${i}`).toString("hex")}`);
      const square = (root * root) % P;
      expect([isSquare(square), isSquare((2n * square) % P)]).toEqual([true, false]);
    }
  });
});
