import SchemaBuilder from "@pothos/core";
import type { Lamports } from "../chain/lamports.ts";
import type { Context } from "../resolvers/context.ts";

/** The Pothos builder that every file of this folder adds its types to. */
export const builder = new SchemaBuilder<{
  Context: Context;
  DefaultFieldNullability: false;
  Scalars: { Lamports: { Input: never; Output: Lamports } };
}>({ defaultFieldNullability: false });
