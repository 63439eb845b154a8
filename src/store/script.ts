/**
 * Lua scripts by name. A script declares the names of its keys and arguments once: its text uses
 * them as locals, and a call passes a value for each. Lua gets every value as a string.
 */
import type { z } from "zod";

/** A Lua script and its result's schema. `Call` has a value for each name of the script. */
export interface Script<Call, Answer> {
  readonly text: string;
  readonly answer: z.ZodType<Answer>;
  /** Returns what the script gets as KEYS and ARGV. */
  readonly toArguments: (call: Call) => ScriptArguments;
}

export interface ScriptArguments {
  readonly keys: readonly string[];
  readonly args: readonly Value[];
}

type Value = string | number;
type Values<Name extends string> = Readonly<Record<Name, Value>>;
type Rows<Each> = Each extends readonly string[]
  ? { readonly each: readonly (Values<Each[number]> & { readonly key: string })[] }
  : unknown;

/**
 * Creates a script. In this example it has two keys and one argument:
 *
 *     script({ keys: ["from", "to"], args: ["ttlMs"], answer: z.int(), text: "..." })
 *     redis.run(SCRIPT, { from: "a", to: "b", ttlMs: 1_000 })
 *
 * With `each`, it has any number of keys instead. The text uses KEYS, and each name of `each` as a
 * table with one value per key. A call passes each key with its values:
 *
 *     script({ args: ["ttlMs"], each: ["value"], answer: z.int(), text: "..." })
 *     redis.run(SCRIPT, { ttlMs: 1_000, each: [{ key: "a", value: 1 }, { key: "b", value: 2 }] })
 *
 * In a cluster, a script's keys must share one hash tag, to be on one node.
 */
export function script<
  const Key extends string = never,
  const Arg extends string = never,
  const Each extends readonly string[] | undefined = undefined,
  Answer = unknown,
>({
  keys = [],
  args = [],
  each = [],
  answer,
  text,
}: {
  keys?: readonly Key[];
  args?: readonly Arg[];
  each?: Each;
  answer: z.ZodType<Answer>;
  text: string;
}): Script<Readonly<Record<Key, string>> & Values<Arg> & Rows<Each>, Answer> {
  // ARGV: the arguments, then the first name's values for all keys, then the second name's.
  const tables = each.map(
    (name, i) =>
      `local ${name} = {unpack(ARGV, ${args.length + 1} + ${i} * #KEYS, ` +
      `${args.length} + ${i + 1} * #KEYS)}\n`,
  );
  return {
    text: `${toLocals(keys, "KEYS")}${toLocals(args, "ARGV")}${tables.join("")}${text}`,
    answer,
    toArguments(call) {
      const { each: rows = [] } = call as { readonly each?: Rows<string[]>["each"] };
      return {
        keys: [...keys.map((name) => call[name]), ...rows.map(({ key }) => key)],
        args: [
          ...args.map((name) => call[name]),
          ...each.flatMap((name) => rows.map((row) => row[name]!)),
        ],
      };
    },
  };
}

function toLocals(names: readonly string[], values: "KEYS" | "ARGV"): string {
  return names.length > 0 ? `local ${names.join(", ")} = unpack(${values})\n` : "";
}
