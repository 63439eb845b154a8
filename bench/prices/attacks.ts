import { CHAIN_ATTACKS } from "./chain-attacks.ts";
import { GRAPHQL_ATTACKS } from "./graphql-attacks.ts";
import { HTTP_ATTACKS } from "./http-attacks.ts";
import type { Attack } from "./price-of.ts";

/** All attacks on the CPU, in the order of the table in SECURITY.md. */
export const ATTACKS: readonly Attack[] = [...GRAPHQL_ATTACKS, ...CHAIN_ATTACKS, ...HTTP_ATTACKS];
