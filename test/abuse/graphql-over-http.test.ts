import { serverAudits } from "graphql-http";
import { describe, expect } from "vitest";
import { withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ RATE_LIMIT_MAX: "1000000" });

const audits = serverAudits({ url: () => `${world.url}/graphql` });

describe("the audits of the GraphQL over HTTP specification", () => {
  it.each(audits.map(({ id, name, fn }) => ({ id, name, fn })))("$id: $name", async ({ fn }) => {
    const result = await fn();
    expect(result).toMatchObject({ status: "ok" });
  });
});
