import type { ChildProcess } from "node:child_process";

/** Has a process end with this one at the latest, also when the test that should end it fails. */
export function endWithTests(child: ChildProcess): void {
  process.once("exit", () => child.kill("SIGKILL"));
}
