import { expect, it } from "vitest";
import { invalidMint, MAX_MINTS, tooManyMints, toMints } from "../../src/contract/mint.ts";

it.each([
  "So11111111111111111111111111111111111111112",
  "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
  "11111111111111111111111111111111",
  // A program-derived address, which is not on the curve.
  "4xKwZ3FLHyL5y3gww91yYDuapwUwfUSStTxFZcCxFCPg",
])("%s is a mint", (text) => {
  expect(toMints([text])).toEqual([text]);
});

it.each([
  "",
  " ",
  "nonsense",
  "So1111111111111111111111111111111111111111",
  "So111111111111111111111111111111111111111122",
  "1111111111111111111111111111111",
  "111111111111111111111111111111111",
  "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
  " So11111111111111111111111111111111111111112",
  "So11111111111111111111111111111111111111112\n",
  "So1111111111111111111111111111111111111111O",
  "0x1111111111111111111111111111111111111111",
  "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v,EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
])("%j is not a mint", (text) => {
  expect(() => toMints([text])).toThrow(invalidMint(text));
});

it("describes the format and the received value in the error's message", () => {
  expect(invalidMint("nonsense")).toMatchObject({
    code: "INVALID_MINT",
    message: 'A mint must be a Solana address: 32 bytes in base58. Received "nonsense".',
  });
  expect(invalidMint(7).message).toContain("Received a number.");
  expect(tooManyMints(MAX_MINTS + 1)).toMatchObject({
    code: "INVALID_MINT",
    message: "At most 10 mints are allowed. Received 11.",
  });
});
