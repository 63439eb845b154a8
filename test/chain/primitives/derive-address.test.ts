import { hash } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { expect, it } from "vitest";
import { deriveAddress, findAddress } from "../../../src/chain/primitives/derive-address.ts";

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

it("deriving changes no seed", () => {
  const seeds = [Buffer.from("social"), Buffer.from("1")];
  deriveAddress(seeds, PROGRAM);
  expect(seeds).toEqual([Buffer.from("social"), Buffer.from("1")]);
});
