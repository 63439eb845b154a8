import {
  execute,
  getOperationAST,
  GraphQLError,
  OperationTypeNode,
  specifiedRules,
  validate,
  type GraphQLSchema,
} from "graphql";
import { isAsyncIterable, type GraphQLParams, type Plugin } from "graphql-yoga";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { fieldsOf } from "../schema/selected-fields.ts";
import type { ServerContext } from "./context.ts";
import { createTimeShares } from "./time-shares.ts";
import { createDocuments, type Document, type Parsed } from "./documents.ts";
import { badRequest } from "./errors.ts";
import { measureOperation, type OperationSize } from "./limits/operation-size.ts";
import { MUST_ACCEPT, type Accepts } from "./media-types.ts";

const MAX_VALIDATION_ERRORS = 5;
/** What a field takes if it fails, also later than `execute` returns. */
const MS_PER_FIELD = 0.015;

/**
 * Runs operations by graphql-js. Before a document is validated, its operations are measured, and
 * the caller pays for the one that is to run.
 */
export function useOperations(schema: GraphQLSchema): Plugin<ServerContext, ServerContext> {
  const documents = createDocuments();
  const shares = createTimeShares();

  /** Measures the operations of a document; all, because validation visits them all. */
  function measure(
    { parsed }: Document,
    { operationName, variables }: GraphQLParams,
    accepts: Accepts,
  ): Pick<OperationSize, "requests"> & { fields: number } {
    if (parsed instanceof GraphQLError) return { requests: 1, fields: 0 };
    const selection = getOperationAST(parsed.node, operationName);
    let [requests, fields] = [1, 0];
    for (const operation of parsed.operations) {
      const isSelected = operation === selection;
      const values = isSelected ? variables : undefined;
      const size = measureOperation(schema, parsed.fragments, operation, values);
      if (!isSelected) continue;
      ({ requests } = size);
      ({ fields } = size.counts);
      const isSubscription = operation.operation === OperationTypeNode.SUBSCRIPTION;
      if (isSubscription) limitSubscription(parsed, operation.selectionSet, size);
      // Yoga checks this only after it has run the operation, even a mutation.
      if (isSubscription ? !accepts.events : !accepts.result)
        throw badRequest(MUST_ACCEPT, { status: 406 });
    }
    return { requests, fields };
  }

  return {
    onParams({ paramsHandler, setParamsHandler }) {
      setParamsHandler(async (payload) => {
        const { params, context } = payload;
        const { scope, accepts } = context;
        const { addressBlock } = scope;
        await shares.turn(addressBlock);
        const document = shares.measure(addressBlock, () =>
          documents.use(params.query!, addressBlock),
        );
        let isStream = false;
        try {
          const { requests, fields } = shares.measure(addressBlock, () =>
            measure(document, params, accepts),
          );
          await admit(requests, scope);
          shares.charge(addressBlock, fields * MS_PER_FIELD);
          document.isKept = true;
          if (document.parsed instanceof GraphQLError) throw document.parsed;
          context.parsed = document.parsed;
          const result = await shares.measure(addressBlock, () => paramsHandler(payload));
          const { stream } = scope;
          isStream = isAsyncIterable(result) && stream?.signal.aborted === false;
          const release = () => {
            documents.release(document);
          };
          if (isStream) stream?.signal.addEventListener("abort", release, { once: true });
          return result;
        } finally {
          if (!isStream) documents.release(document);
        }
      });
    },

    onParse({ context, setParsedDocument }) {
      setParsedDocument(context.parsed!.node);
    },

    onValidate({ context: { parsed, scope }, setResult }) {
      const { node, errors } = parsed!;
      if (!errors) scope.log.debug("parsed and validated a document that was not cached");
      parsed!.errors ??= validate(schema, node, specifiedRules, {
        maxErrors: MAX_VALIDATION_ERRORS,
      });
      setResult([...parsed!.errors]);
    },

    onExecute({ setExecuteFn }) {
      setExecuteFn(execute);
    },
  };
}

function limitSubscription(
  { fragments }: Parsed,
  selectionSet: Parsed["operations"][number]["selectionSet"],
  { historyRequests }: OperationSize,
): void {
  // Each event would read the history again.
  if (historyRequests > 0)
    throw badRequest(
      "A subscription has no `history` and no `coinsSeen`. Query them after an event.",
    );
  fieldsOf(fragments, [selectionSet], ({ directives = [] }) => {
    if (directives.length === 0) return true;
    // graphql-js fails if it is.
    throw badRequest("The field of a subscription cannot be skipped: it has no directives.");
  });
}

/**
 * Takes what an operation costs. Rejects with ContractError RATE_LIMITED, or with GraphQLError
 * BAD_REQUEST if the operation costs more than a request may: clients would wait in vain.
 */
async function admit(requests: number, scope: RequestScope): Promise<void> {
  try {
    await scope.admit(requests);
  } catch (error) {
    const { maxCost = Infinity } = scope.rateLimit ?? {};
    if (requests <= maxCost) throw error;
    throw badRequest(
      `This request counts as ${requests} requests, and one request may count as at most ${maxCost}. Split it.`,
    );
  }
}
