import type { ChildProcess } from "node:child_process";

/** Kills a child process when this process exits, in case the test did not end it. */
export function endWithTests(child: ChildProcess): void {
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("exit", () => process.off("exit", kill));
}
