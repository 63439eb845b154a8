/**
 * The result of checking a variable. `poor`: the operator should look at it. `bad`: something does
 * not work now.
 */
export interface Finding {
  readonly state: "good" | "poor" | "bad";
  readonly variable: string;
  readonly text: string;
  /** The service can never work with this value. */
  readonly isFatal?: boolean;
  /**
   * A warning of the service (`observability/warnings.ts`) also reports the problem, so the
   * start does not log it.
   */
  readonly isReported?: boolean;
}

const create =
  (state: Finding["state"]) =>
  (variable: string, text: string, flags?: Partial<Finding>): Finding => ({
    state,
    variable,
    text,
    ...flags,
  });

export const good = create("good");
export const poor = create("poor");
export const bad = create("bad");
