import { getOperationAST, parse } from "graphql";
import type { Compile } from "../graphql/compiler.ts";
import type { UseCases } from "../resolvers/use-cases.ts";
import type { RequestScope } from "../resolvers/request-scope.ts";

/** Runs a fixed GraphQL operation. Returns its data or throws its first error. */
export type PreparedOperation<Data> = (
  variables: Readonly<Record<string, unknown>>,
  scope: RequestScope,
) => Promise<Data>;

export type PrepareOperation = ReturnType<typeof createPrepareOperation>;

export function createPrepareOperation(compile: Compile, useCases: UseCases) {
  return <Data>(text: string): PreparedOperation<Data> => {
    const document = parse(text);
    const run = compile(document, getOperationAST(document)!, 0);
    return async (variables, scope) => {
      const { data, errors } = await run({ useCases, scope }, variables);
      const error = errors?.[0];
      if (error) throw error.originalError ?? error;
      return data as Data;
    };
  };
}
