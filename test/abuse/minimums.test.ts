import { afterEach, expect, it } from "vitest";
import { atOnce } from "../support/client.ts";
import { startWorld, type World } from "../support/world.ts";

let world: World;
afterEach(() => world.close());

const collect = (minimum: string | undefined) =>
  world.post("/collect", { socialId: world.account("creator").id, minimum });

it("a hundred callers with a minimum that is out of reach neither simulate nor cost anything", async () => {
  world = await startWorld();
  const { chain, feePayer } = world.sandbox;
  const before = chain.balance(feePayer);
  const answers = await atOnce(100, () => collect("9999999999.999999999"));
  for (const { body } of answers) expect(body.error).toBe("NOTHING_TO_COLLECT");
  expect(world.chainCalls()).not.toContain("simulateTransaction");
  expect(world.chainCalls().length).toBeLessThan(100);
  expect(chain.balance(feePayer)).toBe(before);
});

it("they keep nobody from collecting", async () => {
  world = await startWorld();
  const answers = await atOnce(60, (i) => collect(i === 30 ? undefined : "9999999999"));
  expect(answers[30]!.body).toMatchObject({ success: true, collected: "3.1000" });
  expect(world.sandbox.landedCollectsOf("creator")).toHaveLength(1);
});
