import { expect, it } from "vitest";
import { runLoad } from "../../bench/load/load.ts";

it("responses match the chain under load with every fault, and no resource leaks", async () => {
  const { problems } = await runLoad(5);
  expect(problems).toEqual([]);
}, 180_000);
