import { setTimeout as sleep } from "node:timers/promises";

/** How long closed resources may take to disappear. */
const RELEASE_MS = 20_000;

/** The number of resources that keep the process alive, by kind. */
export function countResources(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
}

/** The kinds with more resources than before, after up to RELEASE_MS. */
export async function resourcesAbove(before: Map<string, number>): Promise<string[]> {
  const giveUpAt = performance.now() + RELEASE_MS;
  for (;;) {
    const now = countResources();
    const more = [...now].filter(([kind, count]) => count > (before.get(kind) ?? 0));
    if (more.length === 0 || performance.now() > giveUpAt)
      return more.map(([kind, count]) => `${count} ${kind}`);
    await sleep(100);
  }
}
