import SchemaBuilder from "@pothos/core";
import { formatSol, type Lamports } from "../chain/primitives/lamports.ts";
import type { Context } from "../resolvers/use-cases.ts";

/** The Pothos builder that every file of this folder adds its types to. */
export const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  Scalars: { Lamports: { Input: never; Output: Lamports } };
}>({ defaultFieldNullability: false });

builder.scalarType("Lamports", {
  description:
    "An exact amount in lamports (10^-9 SOL), as a string of decimal digits, because JSON numbers lose digits above 2^53.",
  // The chain's glossary. This anchor has survived several moves.
  specifiedByURL: "https://solana.com/docs/references/terminology#lamport",
  serialize: (lamports) => lamports.toString(),
});

/** The values of an enum type, each with its description. */
export function enumValues<Value extends string>(descriptions: Readonly<Record<Value, string>>) {
  const values = Object.entries<string>(descriptions).map(([value, description]) => [
    value,
    { description },
  ]);
  return Object.fromEntries(values) as Record<Value, { description: string }>;
}

export function inSol(description: string): string {
  return `${description} In SOL, a decimal string with 4 digits after the point, truncated, never rounded up.`;
}

type Types = typeof builder extends PothosSchemaTypes.SchemaBuilder<infer T> ? T : never;

/** What makes the arguments of a field, and the fields of an input type. */
export type InputFields = PothosSchemaTypes.InputFieldBuilder<Types, "Arg" | "InputObject">;

/** An amount in SOL, and the same in exact lamports, as the field `<name>Lamports`. */
export function amountFields<Parent>(
  t: PothosSchemaTypes.ObjectFieldBuilder<Types, Parent>,
  name: string,
  description: string,
  amountOf: (parent: Parent) => Lamports,
) {
  return {
    [name]: t.string({
      description: inSol(description),
      resolve: (parent) => formatSol(amountOf(parent)),
    }),
    [`${name}Lamports`]: t.field({
      type: "Lamports",
      description: `The exact \`${name}\`.`,
      resolve: amountOf,
    }),
  };
}
