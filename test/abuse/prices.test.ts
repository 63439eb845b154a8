import { readFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { ATTACKS } from "../../bench/prices/attacks.ts";
import { priceOf, warmUp } from "../../bench/prices/price-of.ts";
import { createTarget } from "../../bench/prices/target.ts";
import { startProduction } from "../support/production.ts";
import { startTestSandbox } from "../support/sandbox.ts";

const ROUNDS = 3;
/** CPU time varies with what else the machine does, though less than time does. */
const TOLERANCE = 3;

/** The table's prices in lookups, by attack. */
function pricesInTable(): Map<string, number> {
  const page = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
  const [, table = ""] = page.split("\n| One request |");
  const rows = table.trimEnd().split("\n\n")[0]!.split("\n").slice(2);
  return new Map(
    rows.map((row) => {
      const [name, , now] = row.split("|").slice(1, -1);
      return [name!.trim(), Number(now)];
    }),
  );
}

it("an attack's request costs the CPU time that SECURITY.md says", async () => {
  const stated = pricesInTable();
  expect([...stated.keys()]).toEqual(ATTACKS.map(({ name }) => name));

  const sandbox = await startTestSandbox();
  onTestFinished(() => sandbox.close());
  const { client } = await startProduction(sandbox);
  const target = createTarget(client.url);
  onTestFinished(() => target.close());
  await warmUp(target);
  const tooMuch: string[] = [];
  for (const attack of ATTACKS) {
    const { lookups } = await priceOf(attack, target, ROUNDS);
    const most = stated.get(attack.name)!;
    if (lookups > most * TOLERANCE)
      tooMuch.push(`${attack.name}: ${lookups.toFixed(1)} lookups, not ${most}`);
  }
  expect(tooMuch).toEqual([]);
});
