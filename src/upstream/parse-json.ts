/** What a text says as JSON; undefined when it is none, which no JSON text can say. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
