import { test } from "vitest";
import { startWorld, type World } from "./world.ts";

/** The world of the file that runs, from its first test with a world on. */
export let world: World;

/**
 * A test's function whose tests share a world, which is started once per file, with the arguments
 * of {@link startWorld}. Faults end with their test.
 */
export const withWorld = (...options: Parameters<typeof startWorld>) =>
  test
    .extend("world", { scope: "file", auto: true }, async ({}, { onCleanup }) => {
      world = await startWorld(...options);
      onCleanup(world.close);
      return world;
    })
    .extend("faults", { auto: true }, ({ world }, { onCleanup }) => {
      onCleanup(world.clearFaults);
    });

/** Tests that share a world with the default configuration. */
export const it = withWorld();
