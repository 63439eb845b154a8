import { CONSTANT_NAMES, VARIABLE_NAMES, type Environment } from "../config.ts";

/**
 * Warns about likely misspellings: names with the first word and another word of a known name.
 * Quotes no value.
 */
export function warnAboutUnknown(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !VARIABLE_NAMES.includes(name) && !CONSTANT_NAMES.includes(name))
    .flatMap((name) => {
      const [first, ...others] = name.toUpperCase().split("_");
      const common = (candidate: string) => {
        const words = candidate.split("_");
        return words[0] === first ? others.filter((word) => words.includes(word)).length : 0;
      };
      const closest = VARIABLE_NAMES.toSorted((a, b) => common(b) - common(a))[0]!;
      return common(closest) === 0
        ? []
        : [`${name} is not a variable of this service and has no effect. Did you mean ${closest}?`];
    });
}
