/** How many letters of a name may be wrong, by its minimum length. Shorter names match variables of other programs. */
const TYPOS = [
  { minLength: 10, letters: 2 },
  { minLength: 6, letters: 1 },
];

/**
 * Warns about each variable of `env` that the service does not read but whose name resembles one of `known`: a
 * misspelling, or the same words with some added or missing. No warning quotes a value.
 */
export function warnAboutUnknown(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): string[] {
  return Object.keys(env)
    .filter((name) => env[name] && !known.includes(name))
    .flatMap((name) => {
      const [closest] = known
        .filter((candidate) => resembles(name.toUpperCase(), candidate))
        .sort((a, b) => distance(name.toUpperCase(), a) - distance(name.toUpperCase(), b));
      return closest === undefined
        ? []
        : [`${name} is not a variable of this service and has no effect. Did you mean ${closest}?`];
    });
}

function resembles(name: string, known: string): boolean {
  const letters = TYPOS.find(({ minLength }) => known.length >= minLength)?.letters ?? 0;
  return distance(name, known) <= letters || hasWordsOf(name, known) || hasWordsOf(known, name);
}

/** Whether `part` has at least two words and `name` has all of them. */
function hasWordsOf(name: string, part: string): boolean {
  const words = part.split("_");
  return words.length > 1 && words.every((word) => name.split("_").includes(word));
}

/** The number of letters to insert, delete or replace to turn `a` into `b` (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
