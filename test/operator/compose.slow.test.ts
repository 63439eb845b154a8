import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readConfig, VARIABLE_NAMES } from "../../src/config.ts";
import { compose, gatewaysOf, parseFile, podEnv } from "../support/deployment-files.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";

/**
 * Replaces variables as Docker Compose does, with the operator's password, and defaults for the
 * others.
 */
const interpolate = (text: string) =>
  text
    .replace(/\$\{REDIS_PASSWORD(?::\?[^}]*)?\}/g, "the-password")
    .replace(/\$\{[A-Z_]+:-([^}]*)\}/g, "$1");
const environmentOf = ({ environment }: any): Record<string, string> =>
  Object.fromEntries(
    Object.entries<string>(environment).map(([name, value]) => [name, interpolate(value)]),
  );

const sandboxCompose = parseFile("compose.sandbox.yaml");

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

describe("the compose files", () => {
  it.each([
    ["compose.yaml", compose],
    ["compose.sandbox.yaml", sandboxCompose],
  ])("set only variables that exist: %s", (_name, { services }: any) => {
    for (const service of Object.values<any>(services)) {
      if (!service.build) continue;
      expect(VARIABLE_NAMES).toEqual(expect.arrayContaining(Object.keys(service.environment)));
    }
  });

  it("start two replicas with valid variables", () => {
    expect(gatewaysOf(compose)).toHaveLength(2);
    for (const gateway of gatewaysOf(compose)) {
      const { FEE_PAYER_KEYPAIR } = sandbox.env;
      const config = readConfig({ ...sandbox.env, ...environmentOf(gateway), FEE_PAYER_KEYPAIR });
      expect(config).toMatchObject({ host: "0.0.0.0", port: 4000, adminPort: 4001, basePath: "" });
      // As the manifests in `deploy` do.
      expect(config.handleAllowUnderscore).toBe(podEnv.HANDLE_ALLOW_UNDERSCORE === "true");
    }
    for (const { environment } of gatewaysOf(sandboxCompose)) {
      expect(readConfig(environment).nodeEnv).toBe("production");
    }
  });

  it("give Redis, the balancer and the gateways a read-only file system, and no capabilities", () => {
    for (const { services } of [compose, sandboxCompose]) {
      const { redis, balancer } = services;
      for (const service of [redis, balancer, ...gatewaysOf({ services })]) {
        const { read_only, cap_drop, security_opt } = service;
        expect({ read_only, cap_drop, security_opt }).toEqual({
          read_only: true,
          cap_drop: ["ALL"],
          security_opt: ["no-new-privileges:true"],
        });
      }
      expect(redis.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
      // What the file in Caddy's image has.
      expect([redis.cap_add, balancer.cap_add]).toEqual([undefined, ["NET_BIND_SERVICE"]]);
    }
  });

  it("publish no port that has metrics, and scrape that port", () => {
    for (const service of [...gatewaysOf(compose), ...gatewaysOf(sandboxCompose)]) {
      expect(service.ports).toBeUndefined();
    }
    const [job] = parse(sandboxCompose.configs.prometheus.content).scrape_configs;
    expect(job.job_name).toBe("tributary");
    expect(job.static_configs[0].targets).toEqual(["gateway-1:4001", "gateway-2:4001"]);
  });
});
