import { expect, it } from "vitest";
import { runLoad } from "../../bench/load/load.ts";

it("under load and every fault, all that callers are told is so on the chain, and nothing is left behind", async () => {
  const { problems } = await runLoad(5);
  expect(problems).toEqual([]);
}, 180_000);
