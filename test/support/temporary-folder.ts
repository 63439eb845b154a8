import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Has this process's folders. */
const PARENT = mkdtempSync(join(tmpdir(), "tributary-"));
process.once("exit", () => {
  rmSync(PARENT, { recursive: true, force: true });
});

/** Makes an empty folder, which is removed when this process exits. */
export const temporaryFolder = (): string => mkdtempSync(join(PARENT, "folder-"));
