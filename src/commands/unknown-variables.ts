import { CONSTANT_NAMES, VARIABLE_NAMES, type Environment } from "../config.ts";

/** The environment has many short names that are not for this service. */
const LEAST_LETTERS = 8;
/** How many letters of a name may be wrong: more from this length on. */
const LONG_NAME = 10;

/** Kubernetes sets these for each service of a namespace, such as REDIS_PORT_6379_TCP_ADDR. */
const SERVICE_LINK =
  /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

/** The words of each variable, in every order, without endings. */
const SPELLINGS = VARIABLE_NAMES.map((name) => ({
  name,
  spellings: orders(name.split("_").map(withoutEnding)).map((words) => words.join("")),
}));

/**
 * Warns about likely misspellings: names whose letters are almost those of a known name, in any
 * order of the words, and names with the first word and another word of a known name. `fileNames`:
 * the names in `.env`, where nothing is for another program. Quotes no value.
 */
export function warnAboutUnknown(
  env: Environment,
  fileNames: ReadonlySet<string> = new Set(),
): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !VARIABLE_NAMES.includes(name) && !CONSTANT_NAMES.includes(name))
    .filter((name) => fileNames.has(name) || !SERVICE_LINK.test(name))
    .flatMap((name) => {
      const closest = findSpelling(name, fileNames.has(name)) ?? findWords(name);
      return closest === undefined
        ? []
        : [`${name} is not a variable of this service and has no effect. Did you mean ${closest}?`];
    });
}

/** The variable whose letters a name almost has. */
function findSpelling(name: string, isInFile: boolean): string | undefined {
  if (!isInFile && name.replaceAll("_", "").length < LEAST_LETTERS) return undefined;
  const letters = name.toUpperCase().split("_").map(withoutEnding).join("");
  const most = letters.length < LONG_NAME ? 1 : 2;
  let closest: string | undefined;
  let least = most + 1;
  for (const { name: knownName, spellings } of SPELLINGS) {
    for (const spelling of spellings) {
      if (Math.abs(spelling.length - letters.length) >= least) continue;
      const distance = editDistance(letters, spelling);
      if (distance < least) [closest, least] = [knownName, distance];
    }
  }
  return closest;
}

/** The variable that has a name's first word, and the most of its other words. */
function findWords(name: string): string | undefined {
  const [first, ...others] = name.toUpperCase().split("_");
  const common = (candidate: string) => {
    const words = candidate.split("_");
    return words[0] === first ? others.filter((word) => words.includes(word)).length : 0;
  };
  const [closest] = VARIABLE_NAMES.toSorted((a, b) => common(b) - common(a));
  return closest !== undefined && common(closest) > 0 ? closest : undefined;
}

/** A word without the endings that people add or leave out: PROXIES, TRUSTED, ORIGINS. */
function withoutEnding(word: string): string {
  return word.replace(/(?<=\w{3})IES$/, "Y").replace(/(?<=\w{3})(S|ED)$/, "");
}

function orders(words: readonly string[]): string[][] {
  if (words.length < 2) return [[...words]];
  return words.flatMap((word, i) => orders(words.toSpliced(i, 1)).map((rest) => [word, ...rest]));
}

/** How many letters must be added, removed, changed, or swapped with the next. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [];
  const at = (i: number, j: number) => rows[i]?.[j] ?? Infinity;
  for (let i = 0; i <= a.length; i++) {
    const row: number[] = [];
    rows.push(row);
    for (let j = 0; j <= b.length; j++) {
      const change = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwapped ? at(i - 2, j - 2) + 1 : Infinity;
      row.push(i + j === 0 ? 0 : Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, change, swap));
    }
  }
  return at(a.length, b.length);
}
