import { isUtf8 } from "node:buffer";
import { GraphQLError } from "graphql";
import type { Plugin } from "graphql-yoga";
import { parseJson } from "../upstream/parse-json.ts";
import { badRequest } from "./errors.ts";

/** Why a body cannot be read as JSON, if the reason is its encoding: its text would be garbage in a message. */
export function encodingProblem(body: Uint8Array, { headers }: Request): string | undefined {
  if ((headers.get("content-encoding") ?? "identity") !== "identity")
    return "Compressed bodies are not supported.";
  // JSON has no raw NUL; UTF-16 does.
  return isUtf8(body) && !body.includes(0) ? undefined : "The body is not UTF-8: send UTF-8.";
}

/** Parses the body of a POST. Yoga's parser does not say why it cannot. */
export const parseBody: Plugin = {
  onRequestParse({ request: { method }, setRequestParser }) {
    if (method !== "POST") return;
    setRequestParser(async (request) => {
      const body = await request.arrayBuffer().catch((error: unknown) => {
        if (error instanceof GraphQLError) throw error;
        return new ArrayBuffer();
      });
      const value = parseJson(new TextDecoder().decode(body));
      if (typeof value === "object" && value !== null) return value;
      throw badRequest(encodingProblem(new Uint8Array(body), request) ?? "The body must be a JSON object.");
    });
  },
};
