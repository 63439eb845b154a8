/**
 * The result of checking a variable. `poor`: look at it. `bad`: the service cannot work with it now. `text`: what
 * was found, and the fix unless it is good.
 */
export interface Finding {
  readonly state: "good" | "poor" | "bad";
  readonly variable: string;
  readonly text: string;
  /** The service can never work with it. */
  readonly isFatal?: boolean;
  /** While the service runs, another part warns about it: see `observability/warnings.ts`. */
  readonly isReported?: boolean;
}

type Flags = Pick<Finding, "isFatal" | "isReported">;

const create =
  (state: Finding["state"]) =>
  (variable: string, text: string, flags?: Flags): Finding => ({ state, variable, text, ...flags });

export const good = create("good");
export const poor = create("poor");
export const bad = create("bad");
