import type { ChildProcess } from "node:child_process";

const children = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

/** Has a child process end with this process at the latest, also when the test that should end it fails. */
export function endWithTests(child: ChildProcess): void {
  children.add(child);
  child.once("exit", () => children.delete(child));
}
