import { inCamelCase, readConfig, type Config } from "../../src/config.ts";

/** Variables. Values that are not text replace constants. */
export type Env = Readonly<Record<string, string | number | bigint>>;

/** The configuration with these variables and constants. */
export function configure(env: Env): Config {
  const entries = Object.entries(env);
  const variables = entries.filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
  const constants = entries.filter(([, value]) => typeof value !== "string");
  return {
    ...readConfig(Object.fromEntries(variables)),
    ...inCamelCase(Object.fromEntries(constants)),
  };
}
