import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { collectDefaultMetrics } from "@prometheus-io/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startWorld, type World } from "../support/world.ts";

const read = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8");

const alerts = read("alerts.yaml");
/** The PromQL of each rule: the text after `expr:`, or the indented block below it. */
const ruleQueries = [...alerts.matchAll(/^( +)expr: (?:\|\n((?:\1 .*\n)+)|(.+))$/gm)].map(
  ([, , block, line]) => block ?? line!,
);
/** The PromQL of each panel. */
const panelQueries: string[] = [];
JSON.parse(read("dashboard.json"), (key, value: unknown) => {
  if (key === "expr") panelQueries.push(value as string);
  return value;
});

const queries = [...ruleQueries, ...panelQueries];

/** Metrics and labels that Prometheus adds itself. */
const PROMETHEUS_METRICS = ["up"];
const KEYWORDS = ["and", "or", "unless"];

/** The metrics in a query: its words without labels, functions and keywords. */
function metricsIn(query: string): string[] {
  const rest = query
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, "")
    .replace(/\b(?:by|without|on|ignoring) *\([^)]*\)/g, "")
    .replace(/\b\d[\d.e]*\b/g, "");
  return [...rest.matchAll(/[a-z_]\w*(?! *\(|\w)/g)]
    .map(([word]) => word)
    .filter((word) => !KEYWORDS.includes(word) && !PROMETHEUS_METRICS.includes(word));
}

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

describe("the queries of the alerts and the dashboard", () => {
  let world: World;
  beforeAll(async () => {
    // The Redis metrics exist even when Redis is unavailable.
    world = await startWorld({ REDIS_URL: "redis://127.0.0.1:1" });
    collectDefaultMetrics({ register: world.gateway.registry });
  });
  afterAll(() => world.close());

  it("use only metrics that the gateway exports", async () => {
    const { body } = await world.request("/metrics");
    const exported = seriesOf(body);
    const named = queries.flatMap(metricsIn);
    expect(new Set(named).size).toBeGreaterThan(15);
    expect([...new Set(named)].filter((name) => !exported.has(name))).toEqual([]);
  });
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
