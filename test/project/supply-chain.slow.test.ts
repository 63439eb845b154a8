import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const read = (name: string) => readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");
const manifest = JSON.parse(read("package.json"));
const lockText = read("package-lock.json");
const packages: Record<string, any> = JSON.parse(lockText).packages;

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
