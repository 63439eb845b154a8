import { serverAudits } from "graphql-http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld({ RATE_LIMIT_MAX: "1000000" });
});
afterAll(() => world.close());

const audits = serverAudits({ url: () => `${world.url}/graphql` });

describe("the audits of the GraphQL over HTTP specification", () => {
  it.each(audits.map(({ id, name, fn }) => ({ id, name, fn })))("$id: $name", async ({ fn }) => {
    const result = await fn();
    expect(result).toMatchObject({ status: "ok" });
  });
});
