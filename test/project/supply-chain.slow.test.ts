import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

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
