import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { AxeResults, ImpactValue } from "axe-core";
import type { Page } from "playwright-core";

const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

/** What axe finds, with the elements; with animations off, because it measures contrast. */
export async function violationsOn(
  page: Page,
): Promise<{ id: string; impact: ImpactValue | undefined; elements: unknown[] }[]> {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResults>("axe.run()");
  return violations.map(({ id, impact, nodes }) => ({
    id,
    impact,
    elements: nodes.map(({ target }) => target),
  }));
}
