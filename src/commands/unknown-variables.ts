import { VARIABLE_NAMES, type Environment } from "../config.ts";

/** A name without one of our prefixes is a misspelling if so many letters differ. */
const MOST_WRONG_LETTERS = 2;
/** The environment has many short names that are not for this service. */
const LEAST_LETTERS = 8;

/** Kubernetes sets these for each service of a namespace, such as REDIS_PORT_6379_TCP_ADDR. */
const SERVICE_LINK =
  /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

/**
 * Warns about names that begin like our variables, or that are almost one of them. Quotes no value.
 */
export function warnAboutUnknown(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !VARIABLE_NAMES.includes(name) && !SERVICE_LINK.test(name))
    .flatMap((name) => {
      const closest = findClosest(name.toUpperCase());
      return closest === undefined
        ? []
        : [`${name} is not a variable of this service and has no effect. Did you mean ${closest}?`];
    });
}

/** Returns the variable that a name probably means, if any. */
function findClosest(name: string): string | undefined {
  // Node reads variables of its own that begin with NODE_.
  const prefix = /^(?!NODE_)[^_]+_/.exec(name)?.[0] ?? "none";
  const relatives = VARIABLE_NAMES.filter((variable) => variable.startsWith(prefix));
  const candidates = VARIABLE_NAMES.filter(
    (variable) =>
      name.length >= LEAST_LETTERS && wrongLetters(name, variable) <= MOST_WRONG_LETTERS,
  );
  const [closest] = (relatives.length > 0 ? relatives : candidates).toSorted(
    (a, b) => wrongLetters(name, a) - wrongLetters(name, b),
  );
  return closest;
}

/** The letters of the longer name between the same beginning and the same end. */
function wrongLetters(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  while (start < shorter && a[start] === b[start]) start++;
  let end = 0;
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  return Math.max(a.length, b.length) - start - end;
}
