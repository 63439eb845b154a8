import { beforeEach } from "vitest";

/**
 * Tests that cannot pass on the launch platform's own programs, by file and name, each with the
 * reason. All other tests of the project `platform` run on them.
 */
const EXCLUDED: Readonly<Record<string, Readonly<Record<string, string>>>> = {};

beforeEach(({ task, skip }) => {
  const [, file = ""] = /(test\/.*)$/.exec(task.file.filepath) ?? [];
  const reason = EXCLUDED[file]?.[task.name];
  if (reason !== undefined) skip(reason);
});
