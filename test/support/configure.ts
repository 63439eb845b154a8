import { inCamelCase, readConfig } from "../../src/config.ts";
import type { Overrides } from "../../src/services.ts";

/** Variables. Values that are not text replace constants. */
export type Env = Readonly<Record<string, string | number | bigint>>;

/** The configuration with these variables, and the constants to replace. */
export function configure(env: Env) {
  const entries = Object.entries(env);
  const variables = entries.filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  const constants = entries.filter(([, value]) => typeof value !== "string");
  return {
    config: readConfig(Object.fromEntries(variables)),
    constants: inCamelCase(Object.fromEntries(constants)) as Overrides,
  };
}
