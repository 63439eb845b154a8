import {
  execute,
  getOperationAST,
  GraphQLError,
  OperationTypeNode,
  specifiedRules,
  validate,
  type GraphQLSchema,
  type SelectionSetNode,
} from "graphql";
import { isAsyncIterable, type GraphQLParams, type Plugin } from "graphql-yoga";
import type { RequestScope } from "../resolvers/request-scope.ts";
import { fieldsOf } from "../schema/selected-fields.ts";
import type { ServerContext } from "./context.ts";
import { createTimeShares } from "./time-shares.ts";
import { createDocuments, type Parsed } from "./documents.ts";
import { badRequest } from "./errors.ts";
import { measureOperation, type OperationSize } from "./limits/operation-size.ts";
import { MUST_ACCEPT, type Accepts } from "./media-types.ts";

const MAX_VALIDATION_ERRORS = 5;
/** What a field takes if it fails, also later than `execute` returns. */
const MS_PER_FIELD = 0.015;

/**
 * Runs operations by graphql-js. Before a document is validated, the operation that is to run is
 * measured, and the caller pays for it.
 */
export function useOperations(schema: GraphQLSchema): Plugin<ServerContext, ServerContext> {
  const documents = createDocuments();
  const shareOf = createTimeShares();

  /** Measures the operation that is to run. Returns undefined if there is none: Yoga says so. */
  function measure(
    parsed: Parsed,
    { operationName, variables }: GraphQLParams,
    accepts: Accepts,
  ): OperationSize | undefined {
    const operation = getOperationAST(parsed.node, operationName);
    if (!operation) return undefined;
    const size = measureOperation(parsed.fragments, operation, variables);
    const isSubscription = operation.operation === OperationTypeNode.SUBSCRIPTION;
    if (isSubscription) limitSubscription(parsed, operation.selectionSet, size);
    // Yoga checks this only after it has run the operation, even a mutation.
    if (isSubscription ? !accepts.events : !accepts.result)
      throw badRequest(MUST_ACCEPT, { status: 406 });
    return size;
  }

  return {
    onParams({ paramsHandler, setParamsHandler }) {
      setParamsHandler(async (payload) => {
        const { params, context } = payload;
        const { scope, accepts } = context;
        const { addressBlock } = scope;
        const share = shareOf(addressBlock);
        await share.turn();
        const document = share.measure(() => documents.use(params.query!, addressBlock));
        const { parsed } = document;
        let isStream = false;
        try {
          const isInvalid = parsed instanceof GraphQLError;
          const size = share.measure(() =>
            isInvalid ? undefined : measure(parsed, params, accepts),
          );
          await admit(size?.requests ?? 1, scope);
          document.isKept = true;
          if (isInvalid) throw parsed;
          share.charge((size?.counts.fields ?? 0) * MS_PER_FIELD);
          context.parsed = parsed;
          const result = await share.measure(() => paramsHandler(payload));
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
  selectionSet: SelectionSetNode,
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
