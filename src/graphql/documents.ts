import {
  GraphQLError,
  parse,
  Source,
  type DocumentNode,
  type FragmentDefinitionNode,
} from "graphql";
import { ContractError, retryIn } from "../contract/contract-error.ts";
import { TRUSTED_BLOCK, type BudgetScope } from "../fairness/budget.ts";
import { fragmentsOf } from "../schema/selected-fields.ts";
import { countTokens, limitDocument } from "./limits/document-limits.ts";

/** A text that has been parsed, or its syntax error. */
export interface Document {
  readonly text: string;
  /** How many tokens it counts as. */
  readonly size: number;
  readonly parsed: Parsed | GraphQLError;
  /** How many requests and streams use it. */
  uses: number;
  /** The address block for which it was read, which pays for it while it is used. */
  block: string;
  /** Whether it stays after its last use. */
  isKept: boolean;
}

export interface Parsed {
  readonly node: DocumentNode;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** What validation has found; undefined before. */
  errors?: readonly GraphQLError[];
}

/** The tokens of all documents, those in use included. A token takes about 500 bytes. */
const MAX_TOKENS = 100_000;
/** The parts of {@link MAX_TOKENS} that requests and streams of one address block may use. */
const BLOCK_SHARE = 1 / 8;
const TRUSTED_SHARE = 1 / 2;
/** What a document takes besides its tokens and its text, in tokens. */
const TOKENS_PER_DOCUMENT = 10;
const CHARACTERS_PER_TOKEN = 250;
const RETRY_SECONDS = 5;

/**
 * Documents by their text, the least recently used first. One that is in use stays. One whose
 * caller was not admitted goes after its use.
 */
export function createDocuments() {
  const documents = new Map<string, Document>();
  let tokens = 0;
  const usedByBlock = new Map<string, number>();

  const usedBy = (block: string) => usedByBlock.get(block) ?? 0;

  function pay(block: string, size: number): void {
    const sum = usedBy(block) + size;
    if (sum > 0) usedByBlock.set(block, sum);
    else usedByBlock.delete(block);
  }

  function remove({ text, size }: Document): void {
    documents.delete(text);
    tokens -= size;
  }

  return {
    /**
     * Returns the document of a text, which the caller must release. Throws GraphQLError BAD_REQUEST
     * above a limit, or ContractError RATE_LIMITED or SERVICE_BUSY.
     */
    use(text: string, block: string): Document {
      const known = documents.get(text);
      const document = known ?? { text, ...read(text), uses: 0, block, isKept: false };
      const { size } = document;
      if (document.uses === 0) {
        const share = block === TRUSTED_BLOCK ? TRUSTED_SHARE : BLOCK_SHARE;
        if (usedBy(block) + size > share * MAX_TOKENS) throw refusal("RATE_LIMITED", "CALLER");
      }
      if (known) remove(known);
      for (const each of documents.values()) {
        if (tokens + size <= MAX_TOKENS) break;
        if (each.uses === 0) remove(each);
      }
      if (tokens + size > MAX_TOKENS) throw refusal("SERVICE_BUSY", "SERVICE");
      if (document.uses++ === 0) {
        document.block = block;
        pay(block, size);
      }
      documents.set(text, document);
      tokens += size;
      return document;
    },

    release(document: Document): void {
      if (--document.uses > 0) return;
      pay(document.block, -document.size);
      if (!document.isKept) remove(document);
    },
  };
}

function refusal(code: "RATE_LIMITED" | "SERVICE_BUSY", scope: BudgetScope): ContractError {
  const what = "Too many GraphQL documents are in use.";
  return new ContractError(code, { ...retryIn(RETRY_SECONDS, what), extensions: { scope } });
}

function read(text: string): Pick<Document, "size" | "parsed"> {
  const textSize = TOKENS_PER_DOCUMENT + Math.ceil(text.length / CHARACTERS_PER_TOKEN);
  try {
    const size = textSize + countTokens(text);
    const source = new Source(text);
    const node = parse(source);
    // graphql-js would count the lines up to the place of each error.
    source.body = "";
    const fragments = fragmentsOf(node);
    limitDocument(node, fragments);
    return { size, parsed: { node, fragments } };
  } catch (error) {
    if (!(error instanceof GraphQLError) || error.extensions.code !== undefined) throw error;
    error.extensions.code = "GRAPHQL_PARSE_FAILED";
    return { size: textSize, parsed: error };
  }
}
