import type { ChildProcess } from "node:child_process";

const children = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

/** Kills a child process when this process exits, in case the test did not end it. */
export function endWithTests(child: ChildProcess): void {
  children.add(child);
  child.once("exit", () => children.delete(child));
}
