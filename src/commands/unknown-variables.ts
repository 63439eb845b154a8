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
  const prefix = /^(?!NODE_)[^_]+_/.exec(name)?.[0];
  const relatives = prefix ? VARIABLE_NAMES.filter((each) => each.startsWith(prefix)) : [];
  const distances = (relatives.length > 0 ? relatives : VARIABLE_NAMES).map((known) => ({
    known,
    distance: editDistance(name, known),
  }));
  const [closest] = distances.sort((a, b) => a.distance - b.distance);
  const isMisspelling = name.length >= LEAST_LETTERS && closest!.distance <= MOST_WRONG_LETTERS;
  return relatives.length > 0 || isMisspelling ? closest!.known : undefined;
}

/** How many letters must be added, removed or changed. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (const [i, letter] of Array.from(a).entries()) {
    const next = [i + 1];
    for (const [j, other] of Array.from(b).entries())
      next.push(Math.min(row[j]! + (letter === other ? 0 : 1), row[j + 1]! + 1, next[j]! + 1));
    row = next;
  }
  return row[b.length]!;
}
