import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { collectDefaultMetrics } from "@prometheus-io/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ERROR_CODES } from "../../src/contract/error-codes.ts";
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
const PROMETHEUS_LABELS = ["job", "instance", "alertstate"];
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

/** The label names of each series that has samples. */
function labelsOf(exposition: string): Map<string, Set<string>> {
  const labels = new Map<string, Set<string>>();
  for (const [, name, list] of exposition.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = labels.get(name!) ?? new Set();
    for (const [, label] of (list ?? "").matchAll(/(\w+)="/g)) known.add(label!);
    labels.set(name!, known);
  }
  return labels;
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

  it("use only labels that their metrics have", async () => {
    await world.lookup("creator");
    await world.collect(world.account("creator").id);
    const labels = labelsOf((await world.request("/metrics")).body);
    const unknown = queries.flatMap((query) =>
      [...query.matchAll(/(\w+)\{([^}]*)\}/g)].flatMap(([, name, matchers]) =>
        [...matchers!.matchAll(/(\w+)(?:=|!)/g)]
          .filter(([, label]) => !PROMETHEUS_LABELS.includes(label!))
          .filter(([, label]) => !labels.get(name!)?.has(label!))
          .map(([, label]) => `${name} has no label ${label}`),
      ),
    );
    expect(unknown).toEqual([]);
  });

  it("use only existing error codes", () => {
    const codes = queries.flatMap((query) =>
      [...query.matchAll(/\bcode[=!]~"([^"]*)"|\bcode!?="([^"]*)"/g)].flatMap(([, many, one]) =>
        (many ?? one!).split("|"),
      ),
    );
    expect(codes).toContain("SERVICE_BUSY");
    expect(codes.filter((code) => code !== "OK" && !Object.hasOwn(ERROR_CODES, code))).toEqual([]);
  });
});

it("docs/operating.md explains exactly the alerts, in order, with what to look at and what to do", () => {
  const rules = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const sections = read("operating.md").split("\n## Alerts\n")[1]!.split(/^### /m).slice(1);
  expect(sections.map((section) => section.split("\n")[0])).toEqual(rules);
  for (const section of sections) expect(section).toMatch(/ \*\*Look:\*\* .+ \*\*Do:\*\* ./);
  expect(ruleQueries).toHaveLength(rules.length);
});

it("each alert links to its section of docs/operating.md", () => {
  const linked = [...alerts.matchAll(/- alert: (\w+)|runbook: docs\/operating\.md#(\w+)/g)];
  const names = linked.flatMap(([, name]) => name?.toLowerCase() ?? []);
  expect(linked.flatMap(([, , anchor]) => anchor ?? [])).toEqual(names);
});

it("each panel shows the job and the instances that the dashboard's variables select", () => {
  const { templating } = JSON.parse(read("dashboard.json"));
  const names = templating.list.map(({ name }: { name: string }) => name);
  expect(names).toEqual(["datasource", "job", "instance"]);
  const selectors = panelQueries.flatMap((query) => query.match(/\w+\{[^}]*\}/g) ?? []);
  // Alerts are of all instances.
  const selected = /^(ALERTS\{job="\$job"|\w+\{job="\$job", instance=~"\$instance")/;
  expect(selectors.filter((selector) => !selected.test(selector))).toEqual([]);
  expect(selectors.length).toBeGreaterThanOrEqual(panelQueries.length);
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
