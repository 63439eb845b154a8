import type { ASTNode, DocumentNode, GraphQLError, SourceLocation } from "graphql";

/** A node of a document that {@link keepOnlyStarts} has changed. */
interface StartedNode {
  readonly start?: SourceLocation;
}

/**
 * Replaces each node's `loc` by its line and column. `loc` keeps all tokens in memory, and
 * graphql-js searches the document's lines from the first for each node of each error: thousands of
 * errors in a document with thousands of lines would take seconds.
 */
export function keepOnlyStarts(document: DocumentNode): DocumentNode {
  const nodes: ASTNode[] = [document];
  for (const node of nodes) {
    const values: unknown[] = Object.values(node);
    for (const value of values) {
      if (isNode(value)) nodes.push(value);
      else if (Array.isArray(value)) nodes.push(...value.filter(isNode));
    }
    const { line, column } = node.loc!.startToken;
    // Not `delete`: V8 would store the node in a slower form that takes more memory.
    Object.assign(node, { loc: undefined, start: { line, column } });
  }
  return document;
}

function isNode(value: unknown): value is ASTNode {
  return typeof value === "object" && value !== null && "kind" in value && "loc" in value;
}

/** The locations of an error, which graphql-js knows only for a syntax error. */
export function locationsOf({
  locations,
  nodes,
}: GraphQLError): readonly SourceLocation[] | undefined {
  if (locations) return locations;
  const starts = nodes?.flatMap((node) => (node as StartedNode).start ?? []);
  return starts && starts.length > 0 ? starts : undefined;
}
