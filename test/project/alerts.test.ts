import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ERROR_CODES } from "../../src/contract/error-codes.ts";
import { startWorld, type World } from "../support/world.ts";

const read = (file: string) => readFileSync(new URL(`../../docs/${file}`, import.meta.url), "utf8");

const alerts = read("alerts.yaml");
/** The PromQL of each rule: what follows `expr:`, on its line or in the block that is indented below it. */
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

/** What Prometheus knows of a target by itself, and the labels that it adds. */
const OF_PROMETHEUS = ["up"];
const LABELS_OF_PROMETHEUS = ["job", "instance"];
const KEYWORDS = ["and", "or", "unless"];

/** The metrics that a query names: its words but for labels, functions and keywords. */
function metricsIn(query: string): string[] {
  const rest = query
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, "")
    .replace(/\b(?:by|without|on|ignoring) *\([^)]*\)/g, "")
    .replace(/\b\d[\d.e]*\b/g, "");
  return [...rest.matchAll(/[a-z_]\w*(?! *\(|\w)/g)]
    .map(([word]) => word)
    .filter((word) => !KEYWORDS.includes(word) && !OF_PROMETHEUS.includes(word));
}

/** The names of the series that an exposition announces, whether or not they have a sample yet. */
function seriesOf(exposition: string): Set<string> {
  const types = exposition.matchAll(/^# TYPE (\w+) (\w+)$/gm);
  return new Set(
    [...types].flatMap(([, name, type]) =>
      type === "histogram" || type === "summary" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : name!,
    ),
  );
}

/** Of each series of an exposition that has samples, the names of their labels. */
function labelsOf(exposition: string): Map<string, Set<string>> {
  const labels = new Map<string, Set<string>>();
  for (const [, name, list] of exposition.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = labels.get(name!) ?? new Set();
    for (const [, label] of (list ?? "").matchAll(/(\w+)="/g)) known.add(label!);
    labels.set(name!, known);
  }
  return labels;
}

describe("what the alerts and the dashboard name", () => {
  let world: World;
  beforeAll(async () => {
    // No Redis is there: its metrics are.
    world = await startWorld({ REDIS_URL: "redis://127.0.0.1:1" });
  });
  afterAll(() => world.close());

  it("is exported by a gateway", async () => {
    const { body } = await world.request("/metrics");
    const exported = seriesOf(body);
    const named = queries.flatMap(metricsIn);
    expect(new Set(named).size).toBeGreaterThan(15);
    expect([...new Set(named)].filter((name) => !exported.has(name))).toEqual([]);
  });

  it("has the labels by which it is picked", async () => {
    await world.lookup("creator");
    await world.collect(world.account("creator").id);
    const labels = labelsOf((await world.request("/metrics")).body);
    const unknown = queries.flatMap((query) =>
      [...query.matchAll(/(\w+)\{([^}]*)\}/g)].flatMap(([, name, matchers]) =>
        [...matchers!.matchAll(/(\w+)(?:=|!)/g)]
          .filter(([, label]) => !LABELS_OF_PROMETHEUS.includes(label!))
          .filter(([, label]) => !labels.get(name!)?.has(label!))
          .map(([, label]) => `${name} has no label ${label}`),
      ),
    );
    expect(unknown).toEqual([]);
  });

  it("are codes that callers can get", () => {
    const codes = queries.flatMap((query) =>
      [...query.matchAll(/\bcode=~"([^"]*)"|\bcode!?="([^"]*)"/g)].flatMap(([, many, one]) =>
        (many ?? one!).split("|"),
      ),
    );
    expect(codes).toContain("SERVICE_BUSY");
    expect(codes.filter((code) => code !== "OK" && !Object.hasOwn(ERROR_CODES, code))).toEqual([]);
  });
});

it("each alert is explained in docs/operating.md, and no other is", () => {
  const rules = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const explained = [...read("operating.md").matchAll(/^### (Tributary\w+)$/gm)].map(([, name]) => name);
  expect(explained).toEqual(rules);
  expect(ruleQueries).toHaveLength(rules.length);
});
