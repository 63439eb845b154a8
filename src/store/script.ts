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

/**
 * Creates a script. In this example it has two keys and one argument:
 *
 *     script({ keys: ["from", "to"], args: ["ttlMs"], answer: z.int(), text: "..." })
 *     redis.run(SCRIPT, { from: "a", to: "b", ttlMs: 1_000 })
 *
 * A call may pass further `keys`, which the text uses as KEYS. In a cluster, a script's keys must
 * share one hash tag, to be on one node.
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
}): Script<
  Readonly<Record<Key, string>> &
    Readonly<Record<Arg, Value>> & { readonly keys?: readonly string[] },
  Answer
> {
  return {
    text: `${toLocals(keys, "KEYS")}${toLocals(args, "ARGV")}${text}`,
    answer,
    toArguments: (call) => ({
      keys: [...keys.map((name) => call[name]), ...(call.keys ?? [])],
      args: args.map((name) => call[name]),
    }),
  };
}

function toLocals(names: readonly string[], values: "KEYS" | "ARGV"): string {
  return names.length > 0 ? `local ${names.join(", ")} = unpack(${values})\n` : "";
}
