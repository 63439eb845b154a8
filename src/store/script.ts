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

/**
 * Creates a script over a fixed number of keys, in this example two keys and one argument:
 *
 *     script({ keys: ["from", "to"], args: ["ttlMs"], answer: z.int(), text: "..." })
 *     redis.run(SCRIPT, { from: "a", to: "b", ttlMs: 1_000 })
 *
 * In a cluster, a script's keys must share one hash tag, to be on one node.
 */
export function script<
  const Key extends string = never,
  const Arg extends string = never,
  Answer = unknown,
>({
  keys = [],
  args = [],
  answer,
  text,
}: {
  keys?: readonly Key[];
  args?: readonly Arg[];
  answer: z.ZodType<Answer>;
  text: string;
}): Script<Readonly<Record<Key, string>> & Values<Arg>, Answer> {
  return {
    text: `${toLocals(keys, "KEYS")}${toLocals(args, "ARGV")}${text}`,
    answer,
    toArguments: (call) => ({
      keys: keys.map((name) => call[name]),
      args: args.map((name) => call[name]),
    }),
  };
}

/**
 * Creates a script over any number of keys. The text uses KEYS, and each name of `each` as a table
 * with one value per key. A call passes each key with its values:
 *
 *     scriptOverKeys({ args: ["ttlMs"], each: ["value"], answer: z.int(), text: "..." })
 *     redis.run(SCRIPT, { ttlMs: 1_000, each: [{ key: "a", value: 1 }, { key: "b", value: 2 }] })
 */
export function scriptOverKeys<
  const Arg extends string = never,
  const Each extends string = never,
  Answer = unknown,
>({
  args = [],
  each = [],
  answer,
  text,
}: {
  args?: readonly Arg[];
  each?: readonly Each[];
  answer: z.ZodType<Answer>;
  text: string;
}): Script<
  Values<Arg> & { readonly each: readonly (Values<Each> & { readonly key: string })[] },
  Answer
> {
  // ARGV: the arguments, then the first name's values for all keys, then the second name's.
  const tables = each.map(
    (name, i) =>
      `local ${name} = {unpack(ARGV, ${args.length + 1} + ${i} * #KEYS, ` +
      `${args.length} + ${i + 1} * #KEYS)}\n`,
  );
  return {
    text: `${toLocals(args, "ARGV")}${tables.join("")}${text}`,
    answer,
    toArguments: (call) => ({
      keys: call.each.map(({ key }) => key),
      args: [
        ...args.map((name) => call[name]),
        ...each.flatMap((name) => call.each.map((values) => values[name])),
      ],
    }),
  };
}

function toLocals(names: readonly string[], values: "KEYS" | "ARGV"): string {
  return names.length > 0 ? `local ${names.join(", ")} = unpack(${values})\n` : "";
}
