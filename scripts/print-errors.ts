/** Writes the table of error codes to docs/errors.md: `npm run schema`. */
import { readFileSync, writeFileSync } from "node:fs";
import { ERROR_CODES, meaningOf, rowOf, type ErrorCode } from "../src/contract/error-codes.ts";

const HEADING = "## Codes\n";

/** A Markdown table with a row for each error code, in the order of ERROR_CODES. */
export function errorTable(): string {
  const rows = (Object.keys(ERROR_CODES) as ErrorCode[]).map((code) => {
    const { status, retry } = rowOf(code);
    return `|\`${code}\`|${status}|${escapeMarkdown(meaningOf(code))}|${escapeMarkdown(retry)}|`;
  });
  return ["|Code|Status|Meaning|Retry|", "|---|--:|---|---|", ...rows, ""].join("\n");
}

function escapeMarkdown(text: string): string {
  return text.replace(/[|<]/g, "\\$&");
}

if (import.meta.main) {
  const file = new URL("../docs/errors.md", import.meta.url);
  const [before] = readFileSync(file, "utf8").split(HEADING);
  writeFileSync(file, `${before}${HEADING}\n${errorTable()}`);
}
