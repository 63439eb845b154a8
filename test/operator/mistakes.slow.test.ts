import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { warnAboutUnknown } from "../../src/commands/unknown-variables.ts";
import { VARIABLE_NAMES } from "../../src/config.ts";
import { runMain, startProgram } from "../support/program.ts";
import { startTestSandbox } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const GATEWAY = /Gateway +(http\S+)/;

describe("a sandbox", () => {
  it("is refused at an address that other machines reach, and for a misspelled NODE_ENV", async () => {
    const program = runMain({ HOST: "0.0.0.0", PORT: "99999", NODE_ENV: "Production" });
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toContain("  - PORT: ");
    expect(program.output()).toContain("  - NODE_ENV: ");
    expect(program.output()).toMatch(
      / {2}- HOST: expected a loopback address .* got "0\.0\.0\.0".*SANDBOX=true/,
    );
  });

  it("listens there with SANDBOX=true", async () => {
    const program = runMain({ HOST: "0.0.0.0", SANDBOX: "true", PORT: "0" });
    expect(await program.address(GATEWAY)).toContain("http://0.0.0.0:");
  });
});

describe("a misspelled variable", () => {
  it.each([
    ["CORS_ORIGIN", "CORS_ORIGINS"],
    ["REDIS_PASSWORD", "REDIS_URL"],
    ["social_read_per_hour", "SOCIAL_READS_PER_HOUR"],
  ])("is a warning that names the nearest variable: %s", (name, nearest) => {
    expect(warnAboutUnknown({ [name]: "x" })).toEqual([
      `${name} is not a variable of this service and has no effect. Did you mean ${nearest}?`,
    ]);
  });

  it("is none of the names that Kubernetes, shells and other programs set", () => {
    const services = ["REDIS", "TRIBUTARY", "ADMIN_API", "SOCIAL_API", "BASE", "LOG"];
    const names = services.flatMap((service) => [
      `${service}_SERVICE_HOST`,
      `${service}_SERVICE_PORT`,
      `${service}_SERVICE_PORT_HTTP`,
      `${service}_PORT_6379_TCP`,
      `${service}_PORT_6379_TCP_ADDR`,
      `${service}_PORT`,
    ]);
    const others =
      "HOSTNAME NODE_VERSION NODE_OPTIONS NODE_PATH SSH_AUTH_SOCK LESSOPEN BASH_ENV XDG_DATA_DIRS HOMEBREW_PREFIX NO_PROXY HTTPS_PROXY https_proxy HTTP_PROXY ALL_PROXY NODE_USE_ENV_PROXY NODE_EXTRA_CA_CERTS npm_config_cache OTEL_EXPORTER_OTLP_ENDPOINT SHOST HISTSIZE LOGNAME";
    for (const name of [...names, ...others.split(" ")])
      expect(warnAboutUnknown({ [name]: "x" }), name).toEqual([]);
  });
});

it("a key file that every user can read is a warning", async () => {
  const sandbox = await startTestSandbox();
  onTestFinished(() => sandbox.close());
  const file = join(temporaryFolder(), "fee-payer.json");
  writeFileSync(file, sandbox.env.FEE_PAYER_KEYPAIR);
  const env = { ...sandbox.env, ...AMPLE_DEADLINES, FEE_PAYER_KEYPAIR: file, PORT: "0" };
  const warning =
    "FEE_PAYER_KEYPAIR: every user of this machine can read the key's file: run chmod 400";
  chmodSync(file, 0o440);
  const doctor = runMain(env, ["doctor"]);
  expect(await doctor.exitCode()).toBe(0);
  expect(doctor.output()).not.toContain(warning);
  chmodSync(file, 0o644);
  const program = runMain(env);
  await program.address(/"url":"(http[^"]+)"/);
  expect(program.output()).toContain(`"level":40`);
  expect(program.output()).toContain(warning);
});

describe("the arguments of npm start", () => {
  it("--version prints the version and does not start the service", async () => {
    const program = startProgram({ NODE_ENV: "nonsense" }, undefined, ["--version"]);
    expect(await program.exitCode()).toBe(0);
    expect(program.output()).toBe(`${manifest.version}\n`);
  });

  it("-h lists every variable with its default and meaning", async () => {
    const program = startProgram({ NODE_ENV: "nonsense" }, undefined, ["-h"]);
    expect(await program.exitCode()).toBe(0);
    const names = [...program.output().matchAll(/^ {2}([A-Z_]+) /gm)].map(([, name]) => name);
    expect(names).toEqual(VARIABLE_NAMES);
    for (const line of [
      /^ {2}PORT +4000 +port to listen on; 0 picks a free one$/m,
      /^ {2}SOCIAL_API_TOKEN +required +app-only bearer token of/m,
      /^ {2}REDIS_URL +none +redis:\/\/ or rediss:\/\/: replicas share/m,
    ])
      expect(program.output()).toMatch(line);
  });

  it("that are unknown are refused", async () => {
    const program = runMain({ PORT: "0" }, ["--port=4000"]);
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toBe(
      "Tributary cannot start:\n  - Unknown option '--port'; run npm start -- --help\n",
    );
  });
});
