import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Keypair } from "@solana/web3.js";
import { describe, expect, it, onTestFinished } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { warnAboutUnknown } from "../../src/commands/unknown-variables.ts";
import { VARIABLE_NAMES } from "../../src/config.ts";
import { runMain, startProgram } from "../support/program.ts";
import { startTestSandbox } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const GATEWAY = /Gateway +(http\S+)/;

describe("NODE_ENV", () => {
  it("with a misspelled value stops the start, so that no sandbox runs instead of production", async () => {
    const program = runMain({ NODE_ENV: "Production", PORT: "0" });
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toContain(
      '  - NODE_ENV: expected development, test or production, got "Production"',
    );
    expect(program.output()).not.toContain("No real money");
  });
});

describe("a sandbox", () => {
  it("is refused at an address that other machines reach", async () => {
    const program = runMain({ HOST: "0.0.0.0", PORT: "99999" });
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toContain("  - PORT: ");
    expect(program.output()).toMatch(
      / {2}- HOST: expected a loopback address .* got "0\.0\.0\.0".*SANDBOX=true/,
    );
  });

  it("listens there with SANDBOX=true", async () => {
    const program = runMain({ HOST: "0.0.0.0", SANDBOX: "true", PORT: "0" });
    expect(await program.address(GATEWAY)).toContain("http://0.0.0.0:");
  });

  it.each(["localhost", "::1"])("listens at %s without it", async (HOST) => {
    const program = runMain({ HOST, PORT: "0" });
    expect(await program.address(GATEWAY)).toContain(HOST);
  });
});

describe("a misspelled variable", () => {
  it.each([
    ["CORS_ORIGIN", "CORS_ORIGINS"],
    ["TRUST_PROXIES", "TRUST_PROXY"],
    ["REDIS_URI", "REDIS_URL"],
    ["TRUSTED_CALLER", "TRUSTED_CALLERS"],
    ["REDIS_PASSWORD", "REDIS_URL"],
    ["SOCAIL_API_URL", "SOCIAL_API_URL"],
    ["COLECT_TIMEOUT_MS", "COLLECT_TIMEOUT_MS"],
  ])("is a warning: %s", (name, meant) => {
    expect(warnAboutUnknown({ [name]: "x" })).toEqual([
      `${name} is not a variable of this service and has no effect. Did you mean ${meant}?`,
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

describe("ESCROW_PROGRAM_ID", () => {
  const env = {
    SOCIAL_API_URL: "http://127.0.0.1:1",
    SOCIAL_API_TOKEN: "token",
    SOLANA_RPC_URL: "http://127.0.0.1:1",
    FEE_PAYER_KEYPAIR: JSON.stringify([...Keypair.generate().secretKey]),
  };

  it.each(["11111111111111111111111111111111", "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P"])(
    "is refused by start and doctor if nobody could withdraw from its addresses: %s",
    async (id) => {
      for (const args of [[], ["doctor"]]) {
        const program = runMain({ ...env, ESCROW_PROGRAM_ID: id }, args);
        expect(await program.exitCode()).toBe(1);
        expect(program.output()).toContain(
          "  - ESCROW_PROGRAM_ID: expected the escrow program, not one",
        );
      }
    },
  );
});

describe("a key file that every user can read", () => {
  it("is a warning of the start and of the doctor", async () => {
    const sandbox = await startTestSandbox();
    onTestFinished(() => sandbox.close());
    const file = join(temporaryFolder(), "fee-payer.json");
    writeFileSync(file, sandbox.env.FEE_PAYER_KEYPAIR);
    const env = { ...sandbox.env, ...AMPLE_DEADLINES, FEE_PAYER_KEYPAIR: file, PORT: "0" };
    const warning =
      "FEE_PAYER_KEYPAIR: every user of this machine can read the key's file: run chmod 400";
    for (const isWarned of [true, false]) {
      chmodSync(file, isWarned ? 0o644 : 0o440);
      const doctor = runMain(env, ["doctor"]);
      expect(await doctor.exitCode()).toBe(0);
      expect(doctor.output().includes(`check  ${warning}`)).toBe(isWarned);
    }
    chmodSync(file, 0o644);
    const program = runMain(env);
    await program.address(/"url":"(http[^"]+)"/);
    expect(program.output()).toContain(`"level":40`);
    expect(program.output()).toContain(warning);
  });
});

describe("SANDBOX in production", () => {
  it("is a warning", async () => {
    const sandbox = await startTestSandbox();
    onTestFinished(() => sandbox.close());
    const program = runMain({ ...sandbox.env, NODE_ENV: "production", SANDBOX: "true", PORT: "0" });
    await program.address(/"url":"(http[^"]+)"/);
    expect(program.output()).toMatch(/"level":40.*SANDBOX has no effect: with NODE_ENV=production/);
  });
});

describe("the arguments of npm start", () => {
  it("--version prints the version and does not start the service", async () => {
    const program = startProgram({ NODE_ENV: "nonsense" }, undefined, ["--version"]);
    expect(await program.exitCode()).toBe(0);
    expect(program.output()).toBe(`${manifest.version}\n`);
  });

  it.each(["--help", "-h"])(
    "%s lists the commands, and every variable with its default and meaning",
    async (option) => {
      const program = startProgram({ NODE_ENV: "nonsense" }, undefined, [option]);
      expect(await program.exitCode()).toBe(0);
      for (const command of ["npm start", "npm run sandbox", "npm run doctor"]) {
        expect(program.output()).toContain(command);
      }
      const names = [...program.output().matchAll(/^ {2}([A-Z_]+) /gm)].map(([, name]) => name);
      expect(names).toEqual(VARIABLE_NAMES);
      expect(program.output()).toMatch(/^ {2}PORT +4000 +port to listen on; 0 picks a free one$/m);
      expect(program.output()).toMatch(
        /^ {2}SOCIAL_API_TOKEN +required +app-only bearer token of/m,
      );
      expect(program.output()).toMatch(
        /^ {2}REDIS_URL +none +redis:\/\/ or rediss:\/\/: replicas share/m,
      );
    },
  );

  it("that are unknown are refused", async () => {
    const program = runMain({ PORT: "0" }, ["--port=4000"]);
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toBe(
      "Tributary cannot start:\n  - Unknown option '--port'; run npm start -- --help\n",
    );
  });
});
