/**
 * The result of checking a variable. `poor`: look at it. `bad`: the service cannot work with it. `text`: what
 * was found, and the fix unless it is good.
 */
export interface Finding {
  readonly state: "good" | "poor" | "bad";
  readonly variable: string;
  readonly text: string;
}

export const good = (variable: string, text: string): Finding => ({ state: "good", variable, text });
export const poor = (variable: string, text: string): Finding => ({ state: "poor", variable, text });
export const bad = (variable: string, text: string): Finding => ({ state: "bad", variable, text });

const LABELS = { good: "ok   ", poor: "check", bad: "WRONG" };

/** The lines to print, and the variables at fault. */
export function report(findings: readonly Finding[]): { text: string; atFault: string[] } {
  const atFault = [
    ...new Set(findings.filter(({ state }) => state === "bad").map(({ variable }) => variable)),
  ];
  const lines = findings.map(({ state, variable, text }) => `${LABELS[state]}  ${variable}: ${text}`);
  const last = atFault.length > 0 ? `At fault: ${atFault.join(", ")}` : "Nothing is wrong.";
  return { text: [...lines, last].join("\n"), atFault };
}
