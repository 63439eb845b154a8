import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { rpcError } from "../support/rpc-answers.ts";
import { isMethod } from "../support/sandbox.ts";
import { BOTH_ENDPOINTS, startWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await startWorld({ SOLANA_RPC_URL: BOTH_ENDPOINTS });
});
afterEach(() => world.close());

/** Errors that sound as if they were about the request. */
const CODES = [-32700, -32002, -32015];
const collect = (handle: string) => world.collect(world.account(handle).id);
const warnings = async () => (await world.request("/readyz")).body.warnings;

describe.each(CODES)("%i of the preferred endpoint", (code) => {
  it("to any method fails no lookup and no collect, and /readyz shows a warning", async () => {
    world.sandbox.rpc.faults.add({ then: rpcError({ code }) });
    for (let i = 1; i <= 3; i++) expect((await world.lookup(`artist00${i}`)).status).toBe(200);
    expect((await collect("creator")).body).toMatchObject({ collected: "3.1000" });
    expect(world.sandbox.landedCollects()).toHaveLength(1);
    expect((await world.request("/readyz")).status).toBe(200);
    const { host } = new URL(world.sandbox.rpc.url);
    expect(await warnings()).toContainEqual(
      expect.stringMatching(new RegExp(`^${host}: a chain endpoint (fails|refuses)`)),
    );
  });

  it("to the read of a landed transaction fails no collect, and /readyz shows a warning", async () => {
    world.sandbox.rpc.faults.add({ when: isMethod("getTransaction"), then: rpcError({ code }) });
    for (const handle of ["creator", "artist001", "artist002"])
      expect((await collect(handle)).body).toMatchObject({ success: true });
    expect(world.sandbox.landedCollects()).toHaveLength(3);
    expect(await warnings()).toHaveLength(1);
  });
});

it("/readyz shows no warning while both endpoints work", async () => {
  expect((await collect("creator")).body).toMatchObject({ collected: "3.1000" });
  expect(await warnings()).toBeUndefined();
});
