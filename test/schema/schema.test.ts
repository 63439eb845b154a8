import { Kind, parse } from "graphql";
import { expect } from "vitest";
import { it, world } from "../support/fixtures.ts";

it("the schema has a description by introspection but not in its SDL: parsers of other languages refuse one", async () => {
  const { body: sdl } = await world.request("/schema.graphql");
  expect(sdl).toMatch(/^(type|enum|interface|scalar|input|"{3})/);
  const { definitions } = parse(sdl);
  expect(definitions.filter(({ kind }) => kind === Kind.SCHEMA_DEFINITION)).toEqual([]);
  const { data } = (await world.graphql("{ __schema { description } }")).body;
  expect(data.__schema.description).toContain("**Limits**");
});
