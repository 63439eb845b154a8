import { readFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { printHead, printRow } from "../../bench/measure.ts";
import { ATTACKS } from "../../bench/prices/attacks.ts";
import { createTarget, priceOf, warmUp } from "../../bench/prices/price-of.ts";
import { startProduction } from "../support/production.ts";
import { startTestSandbox } from "../support/sandbox.ts";

const ROUNDS = { rounds: 3, requests: 3 };
/** CPU time varies with what else the machine does, though less than time does. */
const TOLERANCE = 3;
/** What an attack may cost of its price before, where that was far higher. */
const PART_OF_BEFORE = 3 / 4;

/** The table's prices in lookups, by attack. */
function pricesInTable(): Map<string, { before: number; now: number }> {
  const page = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
  const [, table = ""] = page.split("\n| One request |");
  const rows = table.trimEnd().split("\n\n")[0]!.split("\n").slice(2);
  return new Map(
    rows.map((row) => {
      const [name, before, now] = row.split("|").slice(1, -1);
      return [name!.trim(), { before: Number(before), now: Number(now) }];
    }),
  );
}

it("an attack's request costs the CPU time that SECURITY.md says", async () => {
  const stated = pricesInTable();
  expect([...stated.keys()]).toEqual(ATTACKS.map(({ name }) => name));

  const sandbox = await startTestSandbox();
  onTestFinished(() => sandbox.close());
  const { client } = await startProduction(sandbox);
  const target = createTarget(client.url, sandbox);
  onTestFinished(() => target.close());
  await warmUp(target);
  const tooMuch: string[] = [];
  const measured: [string, string][] = [];
  for (const attack of ATTACKS) {
    const lookups = await priceOf(attack, target, ROUNDS);
    measured.push([attack.name, lookups.toFixed(1)]);
    const { before, now } = stated.get(attack.name)!;
    const most = before > 2 * now ? Math.min(now * TOLERANCE, before * PART_OF_BEFORE) : now * TOLERANCE;
    if (lookups > most) tooMuch.push(`${attack.name}: ${lookups.toFixed(1)} lookups, not ${now}`);
  }
  printHead("One request", "in lookups");
  for (const row of measured) printRow(...row);
  expect(tooMuch).toEqual([]);
});
