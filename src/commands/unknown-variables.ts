import { VARIABLE_NAMES, type Environment } from "../config.ts";

/** How our variables begin, such as `SOCIAL_`. Node reads others of its own with `NODE_`. */
const PREFIXES = VARIABLE_NAMES.flatMap((name) => /^(?!NODE_)[^_]+_/.exec(name) ?? []);

/** Kubernetes sets these for each service of a namespace, such as REDIS_PORT_6379_TCP_ADDR. */
const SERVICE_LINK =
  /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

/** Warns about names that begin like our variables, but are none. Quotes no value. */
export function warnAboutUnknown(env: Environment): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !VARIABLE_NAMES.includes(name) && !SERVICE_LINK.test(name))
    .filter((name) => PREFIXES.some((prefix) => name.toUpperCase().startsWith(prefix)))
    .map(
      (name) =>
        `${name} is not a variable of this service and has no effect: npm start -- --help lists them`,
    );
}
