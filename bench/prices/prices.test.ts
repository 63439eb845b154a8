import { readFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { printHead, printRow } from "../measure.ts";
import { ATTACKS } from "./attacks.ts";
import { createTarget, MAX_LOOKUPS_PER_REQUEST, priceOf, warmUp } from "./price-of.ts";
import { startProduction } from "../../test/support/production.ts";
import { startTestSandbox } from "../../test/support/sandbox.ts";

/** CPU time varies with what else the machine does, though less than time does. */
const TOLERANCE = 3;
/** On a busy machine it takes five minutes. */
const TIMEOUT_MS = 900_000;

/**
 * What a request costs, in lookups, before its {@link TOLERANCE}: at most
 * {@link MAX_LOOKUPS_PER_REQUEST} for each request that it counts as.
 */
const PRICES: Readonly<Record<string, number>> = {
  "330 equal fields in an operation that does not run": 6,
  "100 new ids": 60,
  "100 new mints": 60,
  "The derivations of 100 new ids": 12,
  "`variables` with 9,000 unknown members": 10,
  "Invalid `variables` of 90 kB": 20,
  "Equal arguments of 5 kB in 600 places of ten operations": 6,
  "Fragments nested 590 deep in ten operations": 15,
  "2,200 errors, with the longest alias": 60,
  "100 handles of 88 kB": 10,
  "A new operation, refused for its cost": 1,
  "3,000 mints in a known operation for 100": 2,
  "100 wallets with a new mint each (counts as 3)": 90,
  "A stream of a wallet with 10 new mints, until its first event": 10,
  "A history of 30 crafted transactions (counts as 2)": 45,
  "The coins of 60 crafted transactions (counts as 3)": 70,
  "A collect of 10 new mints below its minimum": 10,
  "A collect of coins that all fail its simulation": 10,
  "One-byte chunks, unknown path": 60,
  "One-byte chunks, wrong method": 60,
  "One-byte chunks above the limit": 60,
  "One-byte chunks, lookup": 60,
  "One-byte chunks, collect": 60,
  "One-byte chunks, GraphQL": 60,
  "One-byte packets, unknown path": 20,
  "One-byte packets, GraphQL": 20,
  "`Accept` of 500 bytes": 2,
  "`Accept` of 15 kB": 2,
  "`Accept` of 15 kB above the limit": 2,
  "A request above the limit": 1,
  "`/`": 1,
  "`/?handle=`, a new one each time": 2,
  "`/openapi.json`": 1,
  "The largest asset": 4,
  "The largest asset above the limit": 1,
  "`/metrics`, without `ADMIN_PORT`": 5,
};

it("SECURITY.md says what a request costs at most", () => {
  const page = readFileSync(new URL("../../SECURITY.md", import.meta.url), "utf8");
  expect(page).toContain(`at most the CPU time of ${MAX_LOOKUPS_PER_REQUEST} lookups`);
});

it(
  "an attack's request costs its price in CPU time",
  async () => {
    expect(Object.keys(PRICES)).toEqual(ATTACKS.map(({ name }) => name));
    for (const [name, price] of Object.entries(PRICES)) {
      const counted = Number(/counts as (\d+)/.exec(name)?.[1] ?? 1);
      expect([name, price / counted <= MAX_LOOKUPS_PER_REQUEST]).toEqual([name, true]);
    }

    const sandbox = await startTestSandbox();
    onTestFinished(() => sandbox.close());
    const { client } = await startProduction(sandbox);
    const target = createTarget(client.url, sandbox);
    onTestFinished(() => target.close());
    await warmUp(target);
    const tooMuch: string[] = [];
    const measured: [string, string][] = [];
    for (const attack of ATTACKS) {
      const lookups = await priceOf(attack, target);
      measured.push([attack.name, lookups.toFixed(1)]);
      const price = PRICES[attack.name]!;
      if (lookups > price * TOLERANCE)
        tooMuch.push(`${attack.name}: ${lookups.toFixed(1)} lookups, not ${price}`);
    }
    printHead("One request", "in lookups");
    for (const row of measured) printRow(...row);
    expect(tooMuch).toEqual([]);
  },
  TIMEOUT_MS,
);
