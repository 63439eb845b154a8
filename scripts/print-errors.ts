/** Prints the table of error codes of docs/errors.md. */
import { ERROR_CODES, meaningOf, rowOf, type ErrorCode } from "../src/contract/error-codes.ts";

const HEADING = "## Codes\n";

/** A Markdown table with a row for each error code, in the order of ERROR_CODES. */
function errorTable(): string {
  const rows = (Object.keys(ERROR_CODES) as ErrorCode[]).map((code) => {
    const { status, retry } = rowOf(code);
    return `|\`${code}\`|${status}|${escapeMarkdown(meaningOf(code))}|${escapeMarkdown(retry)}|`;
  });
  return ["|Code|Status|Meaning|Retry|", "|---|--:|---|---|", ...rows, ""].join("\n");
}

function escapeMarkdown(text: string): string {
  return text.replace(/[|<]/g, "\\$&");
}

/** Returns the document with the table of today's codes. */
export function withErrors(text: string): string {
  const [before] = text.split(HEADING);
  return `${before}${HEADING}\n${errorTable()}`;
}
