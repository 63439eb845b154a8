import SchemaBuilder from "@pothos/core";
import type { Lamports } from "../chain/lamports.ts";
import type { RequestContext } from "../resolvers/context.ts";

/** The builder that every type is made with. It has no types of its own. */
export const builder = new SchemaBuilder<{
  Context: RequestContext;
  DefaultFieldNullability: false;
  Scalars: { Lamports: { Input: never; Output: Lamports } };
}>({ defaultFieldNullability: false });
