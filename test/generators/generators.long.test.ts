import { execFile, spawnSync } from "node:child_process";
import { copyFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { startWorld } from "../support/world.ts";

const FOLDER = fileURLToPath(new URL(".", import.meta.url));

/** A generator: how to generate a client and build it, and how to run the program that uses it. */
interface Generator {
  readonly name: string;
  /** The commands that it needs. */
  readonly tools: readonly string[];
  readonly build: readonly string[];
  readonly run: string;
  /** How many requests the program may send before it is refused. */
  readonly limit?: number;
}

const pip = (name: string) => ["python3 -m venv venv", `venv/bin/pip install -q ${name}`];

const REST: readonly Generator[] = [
  {
    name: "oapi-codegen",
    tools: ["go"],
    build: [
      "go mod init example.com/client",
      "mkdir api",
      "go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -generate types,client -package api openapi.json > api/api.go",
      "go mod tidy",
      "go build -o client .",
    ],
    run: "./client",
  },
  {
    name: "openapi-python-client",
    tools: ["python3"],
    build: [
      ...pip("openapi-python-client==0.29.1"),
      "PATH=$PWD/venv/bin:$PATH openapi-python-client generate --path openapi.json --output-path generated",
    ],
    run: "PYTHONPATH=generated venv/bin/python main.py",
  },
  {
    name: "orval",
    tools: ["npm"],
    build: [
      "npm install --no-audit --no-fund",
      "npx orval --input openapi.json --output api.ts --client fetch",
      "npx tsc --noEmit --strict --lib esnext,dom --module esnext --moduleResolution bundler api.ts",
    ],
    run: "node main.js",
  },
];

const GRAPHQL: readonly Generator[] = [
  {
    name: "genqlient",
    tools: ["go"],
    build: [
      "go mod init example.com/client",
      // The version of x/tools that genqlient 0.8.1 asks for does not compile with Go 1.26.
      "go get github.com/Khan/genqlient@v0.8.1 golang.org/x/tools@v0.52.0",
      "go run github.com/Khan/genqlient",
      "go mod tidy",
      "go build -o client .",
    ],
    run: "./client",
  },
  { name: "graphql_client", tools: ["cargo"], build: ["cargo build"], run: "cargo run -q" },
  {
    name: "ariadne-codegen",
    tools: ["python3"],
    build: [...pip("ariadne-codegen==0.19.0"), "venv/bin/ariadne-codegen"],
    run: "venv/bin/python main.py",
  },
  {
    name: "relay-compiler",
    tools: ["npm"],
    build: [
      "npm install --no-audit --no-fund",
      "mkdir generated",
      "npx relay-compiler relay.config.json",
    ],
    run: "node main.cjs",
    // A page of a history costs two.
    limit: 4,
  },
];

const NOTHING = { code: "NOTHING_TO_COLLECT", collected: "0.0000" };
const REFUSED = { code: "RATE_LIMITED", status: 429, seconds: expect.stringMatching(/^[1-9]\d*$/) };
const PARTIAL = { code: "SOCIAL_NOT_FOUND", handles: ["creator", null] };

const closes: (() => Promise<void>)[] = [];
afterAll(() => Promise.all(closes.map((close) => close())));

/** Generates and builds a client of the service's own description, and returns what it sees. */
async function see({ name, build, run, limit = 2 }: Generator): Promise<any> {
  const folder = temporaryFolder();
  cpSync(join(FOLDER, name), folder, { recursive: true });
  copyFileSync(join(FOLDER, "operations.graphql"), join(folder, "operations.graphql"));
  const world = await startWorld({
    RATE_LIMIT_MAX: String(limit),
    RATE_LIMIT_WINDOW_SECONDS: 3_600,
  });
  closes.push(world.close);
  for (const file of ["openapi.json", "schema.graphql"]) {
    const { body } = await world.request(`/${file}`);
    writeFileSync(join(folder, file), typeof body === "string" ? body : JSON.stringify(body));
  }
  const env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}:${process.env.PATH ?? ""}`,
    BASE_URL: world.url,
    SOCIAL_ID: world.account("creator").id,
  };
  const shell = (command: string) =>
    new Promise<string>((resolve, reject) => {
      execFile("bash", ["-c", command], { cwd: folder, env }, (error, output, errors) => {
        if (error) reject(new Error(`${command}: ${output}${errors}`));
        else resolve(output);
      });
    });
  for (const command of build) await shell(command);
  return JSON.parse(await shell(run));
}

/** Without its tools, a generator is skipped with a note, and fails in CI. */
function itWith({ name, tools }: Generator, test: () => Promise<void>): void {
  const missing = tools.filter((tool) => spawnSync(tool, ["--help"]).error);
  const note = missing.length > 0 ? ` (not installed: ${missing.join(", ")})` : "";
  it.skipIf(missing.length > 0 && !process.env.CI)(name + note, { timeout: 1_800_000 }, test);
}

it("docs/clients.md has the commands that generate", () => {
  const lines = readFileSync(new URL("../../docs/clients.md", import.meta.url), "utf8").split("\n");
  const commands = [...REST, ...GRAPHQL].flatMap(({ build }) => build);
  const shown = commands.filter(
    (command) => /^(go|cargo|npx|mkdir) /.test(command) && !/go build|tsc/.test(command),
  );
  expect(shown.filter((command) => !lines.includes(command))).toEqual([]);
});

describe("a client of the OpenAPI document sees an empty vault, an unknown handle and a refusal with its seconds", () => {
  for (const generator of REST)
    itWith(generator, async () => {
      const missing = { code: "SOCIAL_NOT_FOUND" };
      expect(await see(generator)).toEqual({ nothing: NOTHING, missing, refused: REFUSED });
    });
});

describe("a client of the GraphQL schema sees an empty vault, a partial error and a refusal with its seconds", () => {
  for (const generator of GRAPHQL)
    itWith(generator, async () => {
      const seen = await see(generator);
      expect(seen).toMatchObject({ nothing: NOTHING, partial: PARTIAL, refused: REFUSED });
      if (generator.name === "relay-compiler") expect(seen.page).toBe("a wallet");
    });
});
