import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { startWorld } from "../support/world.ts";

it("GraphQL does not keep large documents in memory", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const heap = () => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const fields = "socialId  ".repeat(18);
  const big = `{ ${Array.from({ length: 100 }, (_, i) => `w${i}: walletById(socialId: "${i}") { ${fields} }`).join(" ")} }`;
  expect(big.length).toBeGreaterThan(20_000);
  const world = await startWorld();
  await world.graphql(big);
  const before = heap();
  for (let i = 0; i < 60; i++) await world.graphql(`${big} # ${i}`);
  // Each takes more than 1 MB when parsed.
  expect(heap() - before).toBeLessThan(30_000_000);
  await world.close();
});
