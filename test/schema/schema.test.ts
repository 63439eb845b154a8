import { readFileSync } from "node:fs";
import { isIntrospectionType, isObjectType, isSpecifiedScalarType, printSchema } from "graphql";
import { describe, expect, it } from "vitest";
import { schema } from "../../src/schema/schema.ts";

const types = Object.values(schema.getTypeMap()).filter(
  (type) => !isIntrospectionType(type) && !isSpecifiedScalarType(type),
);

describe("the schema", () => {
  it("matches schema.graphql (run `npm run schema` after a change)", () => {
    const printed = readFileSync(new URL("../../schema.graphql", import.meta.url), "utf8");
    expect(printed).toBe(`${printSchema(schema)}\n`);
  });

  it("describes every type, field and argument", () => {
    const undescribed = types.flatMap((type) => [
      ...(type.description ? [] : [type.name]),
      ...(isObjectType(type) ? Object.values(type.getFields()) : []).flatMap((field) => [
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
      "wallets(handles: [String!]!): [Wallet]!",
      "walletsById(socialIds: [String!]!): [Wallet]!",
      "rateLimit(): RateLimit",
      "collect(socialId: String!,mints: [String!]): CollectResult",
      "collectMany(collects: [CollectInput!]!): [CollectResult]!",
      "wallet(handle: String!): Wallet",
      "walletById(socialId: String!): Wallet",
    ]);
  });
});
