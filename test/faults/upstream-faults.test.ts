import { afterAll, describe, expect, it } from "vitest";
import { FAULTS } from "../support/upstream-faults.ts";
import { startWorld, type World } from "../support/world.ts";

const worlds: World[] = [];
afterAll(() => Promise.all(worlds.map((world) => world.close())));

describe.each(FAULTS)("$title", ({ rows }) => {
  it.concurrent.each(rows)(
    "$fault: $answer, within $time; $chain",
    async ({ run, answer, chain, env }) => {
      const world = await startWorld(env);
      worlds.push(world);
      const { creatorVault, address } = world.account("creator");
      const before = world.sandbox.chain.balance(creatorVault);
      const { status, body, headers } = await run(world);

      const [expectedStatus, expectedCode] = answer.split(/[ ,;]+/);
      expect([String(status), (body.error as string | undefined) ?? ""]).toEqual([
        expectedStatus,
        status === 200 ? "" : expectedCode,
      ]);
      if (answer.includes("Retry-After"))
        expect(Number(headers.get("retry-after"))).toBeGreaterThan(400);

      await world.gateway.settled();
      const landed = world.sandbox.landedCollectsOf("creator");
      if (chain === "untouched") {
        expect(landed).toEqual([]);
        expect(world.sandbox.chain.balance(creatorVault)).toBe(before);
      } else if (chain === "collected once") {
        expect(landed.map(({ err }) => err)).toEqual([null]);
        expect(world.sandbox.chain.balance(address)).toBe(8_300_000_000n);
      } else {
        expect(landed.map(({ err, feeLamports }) => err !== null && feeLamports > 0n)).toEqual([
          true,
        ]);
      }
    },
  );
});
