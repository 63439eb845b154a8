import { spawn } from "node:child_process";
import { endWithTests } from "../../test/support/ended-children.ts";

/** Starts processes that each keep a core busy. Returns a function that ends them. */
export function startBusyLoops(count: number): () => void {
  const children = Array.from({ length: count }, () => {
    const child = spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
    endWithTests(child);
    return child;
  });
  return () => {
    for (const child of children) child.kill("SIGKILL");
  };
}
