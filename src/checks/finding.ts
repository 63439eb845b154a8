/**
 * The result of checking a variable. `poor`: the operator should look at it. `bad`: the service cannot work with it
 * now. `text`: what was found and, unless it is good, how to fix it.
 */
export interface Finding {
  readonly state: "good" | "poor" | "bad";
  readonly variable: string;
  readonly text: string;
  /** The service can never work with it. */
  readonly isFatal?: boolean;
  /** The running service warns about it elsewhere: see `observability/warnings.ts`. */
  readonly isReported?: boolean;
}

type Flags = Pick<Finding, "isFatal" | "isReported">;

const create =
  (state: Finding["state"]) =>
  (variable: string, text: string, flags?: Flags): Finding => ({ state, variable, text, ...flags });

export const good = create("good");
export const poor = create("poor");
export const bad = create("bad");
