import { HTTP_ATTACKS } from "./http-attacks.ts";
import type { Attack } from "./price-of.ts";

/** All attacks on the CPU, in the order of the table in SECURITY.md. */
export const ATTACKS: readonly Attack[] = [...HTTP_ATTACKS];
