/** What the service's messages and log lines say, as far as the audit depends on it. Change it only here. */

/** A message that says that no fees moved. Must be true of the transaction it names, or of the whole request. */
export const SAYS_NOTHING_MOVED = /nothing was moved/i;

/** A message that says that the request led to no transaction. */
export const SAYS_NOTHING_SENT =
  /no (new )?transaction was sent|no new one was sent|before this collect started/i;

/** A transaction's signature, in base58. */
const SIGNATURE = /\b[1-9A-HJ-NP-Za-km-z]{80,90}\b/;

/** The transaction that a message names. */
export const signatureIn = (message: string): string | undefined => SIGNATURE.exec(message)?.[0];

/** Log lines of a replica that loses Redis, and of one that has it again. */
export const LOGS_REDIS_AWAY = /^Redis is (unavailable|not available yet)/;
export const LOGS_REDIS_BACK = /^Redis is available/;
export const LOGS_ENDPOINT_FAILS = /^a chain endpoint fails/;
/** Errors and worse: see the operator's guide. */
export const LOGS_ERROR_LEVEL = 50;
/** An error that a replica must log while an endpoint lies. */
export const LOGS_FOREIGN_CLUSTER = /another cluster/;
