import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { collectDefaultMetrics } from "@prometheus-io/client";
import { expect } from "vitest";
import { withWorld, world } from "../support/fixtures.ts";

const read = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8");

/** The metrics that the alerts and the dashboard name. */
const named = new Set(
  [
    ...(read("alerts.yaml") + read("dashboard.json")).matchAll(/\b(tributary|nodejs|process)_\w+/g),
  ].map(([name]) => name),
);

/** The series that an exposition declares, with or without samples. */
function seriesOf(exposition: string): Set<string> {
  const types = exposition.matchAll(/^# TYPE (\w+) (\w+)$/gm);
  return new Set(
    [...types].flatMap(([, name, type]) =>
      type === "histogram" || type === "summary"
        ? [`${name}_bucket`, `${name}_sum`, `${name}_count`]
        : name!,
    ),
  );
}

// The Redis metrics exist even when Redis is unavailable.
const it = withWorld({ REDIS_URL: "redis://127.0.0.1:1" });

it("the alerts and the dashboard use only metrics that the gateway exports", async () => {
  collectDefaultMetrics({ register: world.gateway.registry });
  const exported = seriesOf((await world.request("/metrics")).body);
  expect(named.size).toBeGreaterThan(15);
  expect(named.difference(exported)).toEqual(new Set());
});

const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

it.skipIf(!hasPromtool && !process.env.CI)(
  "the alerts fire when docs/alerts.test.yaml and docs/alerts-days.test.yaml say, and not else",
  () => {
    const files = ["alerts.test.yaml", "alerts-days.test.yaml"].map(
      (file) => new URL(`../../docs/${file}`, import.meta.url).pathname,
    );
    const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", ...files], {
      encoding: "utf8",
    });
    expect({ status, output: stdout + stderr }).toMatchObject({ status: 0 });
  },
);
