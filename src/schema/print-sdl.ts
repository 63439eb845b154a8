import { GraphQLSchema, printSchema } from "graphql";

/**
 * The schema as a file of SDL, without the description of the schema itself: parsers of other
 * languages, such as libgraphqlparser and that of Rust's graphql_client, refuse text before
 * `schema`.
 */
export function printSdl(schema: GraphQLSchema): string {
  return `${printSchema(new GraphQLSchema({ ...schema.toConfig(), description: undefined }))}\n`;
}
