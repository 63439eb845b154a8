/**
 * Patterns of the service's messages and log lines. No other file of the load test depends on their
 * wording.
 */

/**
 * Says that no fees moved, in the transaction that the message names or, without one, in the whole
 * request.
 */
export const SAYS_NOTHING_MOVED = /nothing was moved/i;

/** Says that the transaction that the message names landed without effect. */
export const SAYS_WITHOUT_EFFECT = /landed, but moved nothing/i;

/** Says that the request led to no transaction. */
export const SAYS_NOTHING_SENT =
  /no (new )?transaction was sent|no new one was sent|before this collect started/i;

/** A transaction's signature, in base58. */
const SIGNATURE = /\b[1-9A-HJ-NP-Za-km-z]{80,90}\b/;

/** Returns the transaction signature in a message. */
export const signatureIn = (message: string): string | undefined => SIGNATURE.exec(message)?.[0];

/** A replica logs these when it loses Redis, and when it reaches Redis again. */
export const LOGS_REDIS_AWAY = /^Redis is (unavailable|not available yet)/;
export const LOGS_REDIS_BACK = /^Redis is available/;
/** The level of log lines about errors: see docs/operating.md. */
export const LOGS_ERROR_LEVEL = 50;
/** An expected error: a replica must log it while an endpoint shows another cluster. */
export const LOGS_FOREIGN_CLUSTER = /another cluster/;
