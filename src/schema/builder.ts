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
    { value, description },
  ]);
  return Object.fromEntries(values) as Record<Value, { value: Value; description: string }>;
}

export function inSol(description: string): string {
  return `${description} In SOL, a decimal string with 4 digits after the point, truncated, never rounded up.`;
}

/** The options of a field that shows an amount in SOL. */
export function sol<Parent>(description: string, amountOf: (parent: Parent) => Lamports) {
  return {
    description: inSol(description),
    resolve: (parent: Parent) => formatSol(amountOf(parent)),
  };
}

/** The options of a field that shows the field `name` in exact lamports. */
export const exact = (name: string) =>
  ({ type: "Lamports", description: `The exact \`${name}\`.` }) as const;
