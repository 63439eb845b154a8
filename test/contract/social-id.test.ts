import { expect, it } from "vitest";
import { toSocialId } from "../../src/contract/social-id.ts";

it.each([
  ["1", "1"],
  ["12345", "12345"],
  ["1523400000000000123", "1523400000000000123"],
  ["18446744073709551615", "18446744073709551615"],
])("%s is an id", (text, id) => {
  expect(toSocialId(text)).toBe(id);
});

it("drops leading zeros, so that one account has one address", () => {
  expect(toSocialId("007")).toBe("7");
});

it.each([
  "",
  "0",
  "00000000000000000000",
  " 1",
  "1 ",
  "-1",
  "+1",
  "1.0",
  "1e3",
  "0x10",
  "abc",
  "١٢٣",
  "18446744073709551616",
  "000000000000000000001",
  "1\n",
])("%j is not an id", (text) => {
  expect(toSocialId(text)).toBeUndefined();
});
