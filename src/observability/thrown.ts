/** A thrown value as an Error. Any value can be thrown. */
export function toError(value: unknown): Error {
  return value instanceof Error ? value : new Error(String(value));
}

/** Why an aborted signal was aborted. */
export const reasonOf = (signal: AbortSignal): Error => toError(signal.reason);

/** The `code` of an Error, such as Node's `ENOENT`. */
export function codeOf(value: unknown): string | number | undefined {
  const code = value instanceof Error && "code" in value ? value.code : undefined;
  return typeof code === "string" || typeof code === "number" ? code : undefined;
}
