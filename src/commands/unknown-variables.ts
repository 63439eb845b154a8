import { VARIABLE_NAMES, type Environment } from "../config.ts";

/** Kubernetes sets these for each service of a namespace, such as REDIS_PORT_6379_TCP_ADDR. */
const SERVICE_LINK =
  /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

/** Warns about names that begin like our variables, but are none. Quotes no value. */
export function warnAboutUnknown(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !VARIABLE_NAMES.includes(name) && !SERVICE_LINK.test(name))
    .flatMap((name) => {
      const nearest = findNearest(name.toUpperCase());
      return nearest === undefined
        ? []
        : [`${name} is not a variable of this service and has no effect. Did you mean ${nearest}?`];
    });
}

/** The variable with the same beginning, such as `SOCIAL_`, that has most in common with a name. */
function findNearest(name: string): string | undefined {
  // Node reads variables of its own that begin with NODE_.
  const prefix = /^(?!NODE_)[^_]+_/.exec(name)?.[0] ?? "none";
  const relatives = VARIABLE_NAMES.filter((variable) => variable.startsWith(prefix));
  const [nearest] = relatives.toSorted((a, b) => commonLetters(name, b) - commonLetters(name, a));
  return nearest;
}

/** How many letters two names have in common at their beginnings. */
function commonLetters(a: string, b: string): number {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same++;
  return same;
}
