import type { ReadBody } from "../contract/http-messages.ts";
import { UNKNOWN_CLIENT, type Client } from "./client-address.ts";

/** What a request's handler needs of its connection, besides the request. */
export interface CallerConnection {
  /**
   * The path as sent. The request's URL has resolved dot segments and backslashes, which can hide a
   * path from a proxy that blocks it.
   */
  readonly path: string;
  readonly client: Client;
  readonly readBody: ReadBody;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
  readonly disconnect: () => void;
}

/** A request that is refused before it has a connection asks for nothing. */
export const NO_CONNECTION: CallerConnection = {
  path: "/",
  client: UNKNOWN_CLIENT,
  readBody: () => Promise.resolve(Buffer.alloc(0)),
  signal: new AbortController().signal,
  disconnect: () => undefined,
};
