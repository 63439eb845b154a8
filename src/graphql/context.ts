import type { Context } from "../resolvers/use-cases.ts";
import type { Parsed } from "./documents.ts";
import type { Accepts } from "./media-types.ts";

/** What Yoga's plugins know of a request. */
export interface ServerContext extends Context {
  readonly accepts: Accepts;
  /** The request's document. Set before Yoga parses and validates it. */
  parsed?: Parsed;
}
