import { isUtf8 } from "node:buffer";

const UTF8 = new TextDecoder();

/** Parses a JSON text. Returns undefined if it is invalid. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses a body of JSON in UTF-8. Returns undefined if it is invalid. */
export function parseJsonBody(body: Buffer): unknown {
  return isUtf8(body) ? parseJson(UTF8.decode(body)) : undefined;
}

/** Whether a value is an object and no array: any member may be read. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
