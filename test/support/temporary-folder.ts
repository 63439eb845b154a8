import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Has this process's folders. The same for all test files of a worker, which each load this module.
 */
const PARENT = join(tmpdir(), `tributary-${process.pid}`);

/** Makes an empty folder, which is removed when this process exits. */
export function temporaryFolder(): string {
  if (!existsSync(PARENT)) {
    mkdirSync(PARENT);
    process.once("exit", () => {
      rmSync(PARENT, { recursive: true, force: true });
    });
  }
  return mkdtempSync(join(PARENT, "folder-"));
}
