/** Prints the types of the examples in examples/clients. */
import { readFileSync } from "node:fs";
import { preset } from "@graphql-codegen/client-preset";
import { codegen } from "@graphql-codegen/core";
import { parse, printSchema, type GraphQLSchema } from "graphql";
import openapiTypes, { astToString, COMMENT_HEADER } from "openapi-typescript";

const FOLDER = new URL("../examples/clients/", import.meta.url);

/** The module that openapi-typescript generates from an OpenAPI document. */
export async function restTypes(document: object): Promise<string> {
  return COMMENT_HEADER + astToString(await openapiTypes(document as never));
}

/**
 * The module that GraphQL Code Generator's client preset generates from a schema and the examples'
 * operations.
 */
export async function graphqlTypes(schema: GraphQLSchema): Promise<string> {
  const operations = readFileSync(new URL("operations.graphql", FOLDER), "utf8");
  const sections = await preset.buildGeneratesSection({
    schema: parse(printSchema(schema)),
    documents: [
      { location: "operations.graphql", document: parse(operations), rawSDL: operations },
    ],
    config: { useTypeImports: true, strictScalars: true, scalars: { Lamports: "string" } },
    presetConfig: { fragmentMasking: false },
    baseOutputDir: "/",
    plugins: [],
    pluginMap: {},
  });
  return codegen(sections.find(({ filename }) => filename === "/graphql.ts")!);
}
