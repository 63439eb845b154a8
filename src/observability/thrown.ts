/** The thrown value as an Error. Any value can be thrown. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** Why an aborted signal was aborted. */
export const reasonOf = (signal: AbortSignal): Error => toError(signal.reason);

/** The `code` of an Error, such as Node's `ENOENT`. */
export function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
}
