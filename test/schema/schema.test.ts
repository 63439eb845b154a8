import {
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isSpecifiedScalarType,
  Kind,
  parse,
} from "graphql";
import { describe, expect, it } from "vitest";
import { schema } from "../../src/schema/schema.ts";
import { startWorld } from "../support/world.ts";

const types = Object.values(schema.getTypeMap()).filter(
  (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
);

describe("the schema", () => {
  it("has a description by introspection but not in its SDL: parsers of other languages refuse one", async () => {
    const world = await startWorld();
    try {
      const { body: sdl } = await world.request("/schema.graphql");
      expect(sdl).toMatch(/^(type|enum|interface|scalar|input|"{3})/);
      const { definitions } = parse(sdl);
      expect(definitions.filter(({ kind }) => kind === Kind.SCHEMA_DEFINITION)).toEqual([]);
      const { data } = (await world.graphql("{ __schema { description } }")).body;
      expect(data.__schema.description).toContain("**Limits**");
    } finally {
      await world.close();
    }
  });

  it("describes every type, field and argument", () => {
    const undescribed = types.flatMap((type) => [
      ...(type.description ? [] : [type.name]),
      ...(isObjectType(type) || isInterfaceType(type)
        ? Object.values(type.getFields())
        : []
      ).flatMap((field) => [
        ...(field.description ? [] : [`${type.name}.${field.name}`]),
        ...field.args
          .filter(({ description }) => !description)
          .map(({ name }) => `${type.name}.${field.name}(${name})`),
      ]),
    ]);
    expect(undescribed).toEqual([]);
  });

  it("has exactly these root fields", () => {
    const signatures = [
      schema.getQueryType()!,
      schema.getMutationType()!,
      schema.getSubscriptionType()!,
    ].flatMap((root) =>
      Object.values(root.getFields()).map(
        ({ name, args, type }) =>
          `${name}(${args.map((arg) => `${arg.name}: ${String(arg.type)}`).join()}): ${String(type)}`,
      ),
    );
    expect(signatures).toEqual([
      "wallet(handle: String!): Wallet",
      "walletById(socialId: String!): Wallet",
      "node(id: ID!): Node",
      "wallets(handles: [String!]!): [Wallet]!",
      "walletsById(socialIds: [String!]!): [Wallet]!",
      "rateLimit(): RateLimit",
      "collect(socialId: String!,mints: [String!],minimum: String,address: String): CollectResult",
      "collectMany(collects: [CollectInput!]!): [CollectResult]!",
      "wallet(handle: String!): Wallet",
      "walletById(socialId: String!): Wallet",
      "walletsById(socialIds: [String!]!): Wallet!",
    ]);
  });
});
