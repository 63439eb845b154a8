import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
const manifest = JSON.parse(read("package.json"));
const lockText = read("package-lock.json");
const packages: Record<string, any> = JSON.parse(lockText).packages;
const document = read("docs/dependencies.md");

/** Permissive licences. */
const ALLOWED_LICENCES = [
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "ISC",
  "MIT",
  "Unlicense",
];
/** Packages with another licence, or with none in package.json, for the reasons in the document. */
const EXCEPTIONS = ["eyes", "rpc-websockets", "text-encoding-utf-8"];

/** The table rows under a heading of the document, as cells without backticks. */
function rowsUnder(heading: string): string[][] {
  const [, section = ""] = document.split(`## ${heading}\n`);
  return section
    .split("\n## ")[0]!
    .split("\n")
    .filter((line) => line.startsWith("|") && !line.startsWith("|-"))
    .slice(1)
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim().replace(/^`(.*)`$/, "$1")),
    );
}

/** Pairs of an override's path, such as `jayson > uuid`, and its version. */
function overridesIn(tree: Record<string, any>, path = ""): [string, string][] {
  return Object.entries(tree).flatMap(([name, value]): [string, string][] =>
    typeof value === "string" ? [[path + name, value]] : overridesIn(value, `${path}${name} > `),
  );
}

describe("the dependencies", () => {
  it("have exact versions in package.json and its overrides", () => {
    const { dependencies, optionalDependencies, devDependencies, overrides } = manifest;
    const versions = [
      ...Object.entries({ ...dependencies, ...optionalDependencies, ...devDependencies }),
      ...overridesIn(overrides),
    ];
    const loose = versions.filter(
      ([name, version]) => !/^\d+\.\d+\.\d+$/.test(String(version)) && version !== `$${name}`,
    );
    expect(loose).toEqual([]);
  });

  it("are locked by hash, without a registry URL", () => {
    expect(lockText).not.toContain('"resolved"');
    const withoutHash = Object.entries(packages).filter(
      ([path, { integrity }]) => path !== "" && !integrity?.startsWith("sha512-"),
    );
    expect(withoutHash).toEqual([]);
  });

  it("include no compiler of GraphQL documents in production", () => {
    expect(packages["node_modules/graphql-jit"]).toMatchObject({ dev: true });
  });

  it("have a documented decision for each install script", () => {
    const withScript = Object.entries(packages)
      .filter(([, { hasInstallScript }]) => hasInstallScript)
      .map(([path]) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length));
    expect([...new Set(withScript)].sort()).toEqual([
      "@scarf/scarf",
      "bufferutil",
      "node",
      "utf-8-validate",
    ]);
    expect(Object.keys(manifest.allowScripts).sort()).toEqual([...new Set(withScript)].sort());
    expect(rowsUnder("Install scripts").map(([name, runs]) => [name, runs])).toEqual(
      Object.entries(manifest.allowScripts).map(([name, runs]) => [name, runs ? "yes" : "no"]),
    );
  });

  it("are proposed for update, except those with a documented reason", () => {
    const { updates } = parse(read(".github/dependabot.yml"));
    const { ignore } = updates.find((update: any) => update["package-ecosystem"] === "npm");
    const limits = ignore.map((rule: any) => [
      rule["dependency-name"],
      rule.versions[0].slice(">=".length),
    ]);
    const heldBack = rowsUnder("Held back");
    expect(heldBack.map(([name, below]) => [name, below])).toEqual(limits);
    const { dependencies, devDependencies } = manifest;
    for (const [name, below, why] of heldBack) {
      const version: string = { ...dependencies, ...devDependencies }[name!];
      expect(version.localeCompare(below!, "en", { numeric: true }), name).toBeLessThan(0);
      expect(why).toMatch(/./);
    }
    expect([dependencies["@solana/web3.js"], dependencies.graphql]).toEqual([
      expect.stringMatching(/^1\./),
      expect.stringMatching(/^16\./),
    ]);
  });

  it("report no installation, also with npm 10, which ignores allowScripts", () => {
    expect(manifest.scarfSettings).toEqual({ enabled: false });
  });

  it("have a documented reason for each override", () => {
    const reasons = rowsUnder("Overrides");
    expect(reasons.map(([name]) => name)).toEqual(
      overridesIn(manifest.overrides).map(([name]) => name),
    );
    for (const [, why] of reasons) expect(why).toMatch(/./);
  });

  it("have permissive licences, with documented exceptions", () => {
    const others = Object.entries(packages)
      .filter(
        ([path, { dev, license }]) => path !== "" && !dev && !ALLOWED_LICENCES.includes(license),
      )
      .map(([path]) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length));
    expect([...new Set(others)].sort()).toEqual(EXCEPTIONS);
    const [, section] = document.split("## Licences\n");
    for (const name of EXCEPTIONS) expect(section).toContain(`\`${name}\``);
  });
});

describe("the images of the deployment files", () => {
  it.each([
    "Dockerfile",
    "compose.yaml",
    "compose.sandbox.yaml",
    "deploy/redis.yaml",
    ".github/workflows/ci.yml",
  ])("that %s takes from others have a version and a digest", (file) => {
    const images = [...read(file).matchAll(/^(?:FROM|\s+image:|\s+container:) (\S+:\S+)/gm)];
    expect(images.length).toBeGreaterThan(0);
    for (const [, image] of images)
      expect(image).toMatch(/^[a-z/]+:v?\d+(\.\d+\.\d+)?(-[a-z]+)?@sha256:[0-9a-f]{64}$/);
  });

  it("are the same everywhere", () => {
    const digests = new Map<string, Set<string>>();
    for (const file of ["compose.yaml", "compose.sandbox.yaml", "deploy/redis.yaml"])
      for (const [, name, image] of read(file).matchAll(/image: ((?:redis|caddy)):(\S+)/g))
        digests.set(name!, (digests.get(name!) ?? new Set()).add(image!));
    expect([...digests].map(([name, images]) => [name, images.size])).toEqual([
      ["redis", 1],
      ["caddy", 1],
    ]);
  });
});

describe("the workflow", () => {
  const { jobs, permissions } = parse(read(".github/workflows/ci.yml"));

  it("only runs .ci/run, on Node 20 with its own npm, with no right to write", () => {
    expect(permissions).toEqual({ contents: "read" });
    const [job, ...others]: any[] = Object.values(jobs);
    expect(others).toEqual([]);
    expect(job.container).toMatch(/^node:20-/);
    const [checkout, run, ...more] = job.steps;
    expect(checkout.uses).toMatch(/^actions\/checkout@[0-9a-f]{40}$/);
    expect(checkout.with).toEqual({ "persist-credentials": false });
    expect(run).toEqual({ run: ".ci/run" });
    expect(more).toEqual([]);
  });
});
