import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { readConfig, VARIABLE_NAMES } from "../../src/config.ts";
import {
  compose,
  gatewaysOf,
  here,
  parseFile,
  podEnv,
  read,
  ROOT,
  startService,
} from "../support/deployment-files.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { eventually } from "../support/eventually.ts";
import { runMain } from "../support/program.ts";
import { sendRaw } from "../support/raw-request.ts";
import { startRedis } from "../support/redis-server.ts";
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

  it("give a stopping process enough time", () => {
    for (const service of [...gatewaysOf(compose), ...gatewaysOf(sandboxCompose)]) {
      const { collectTimeoutMs } = readConfig(sandbox.env);
      expect(service.stop_grace_period).toBe(`${collectTimeoutMs / 1_000 + 15}s`);
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

  it("name existing files, build targets, build arguments and replicas", () => {
    for (const { services } of [compose, sandboxCompose]) {
      for (const { volumes = [], build } of Object.values<any>(services)) {
        for (const volume of volumes)
          expect(existsSync(join(ROOT, volume.split(":")[0])), volume).toBe(true);
        for (const name of Object.keys(build?.args ?? {})) {
          expect(read("Dockerfile")).toContain(`\nARG ${name}=`);
        }
        if (build?.target) expect(read("Dockerfile")).toContain(` AS ${build.target}\n`);
      }
      const replicas = Object.keys(services).filter((name) => name.startsWith("gateway-"));
      expect(read("Caddyfile")).toContain(
        `{$REPLICAS:${replicas.map((name) => `${name}:4000`).join(" ")}}`,
      );
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

  it("of the sandbox gives the replicas what npm run sandbox prints", async () => {
    const { environment } = sandboxCompose.services.sandbox;
    const program = runMain({ ...environment, HOST: "127.0.0.1" }, [
      "sandbox",
      "--chain-port=0",
      "--social-port=0",
    ]);
    await eventually(() => {
      expect(program.output()).toContain("Ctrl-C");
    });
    const printed = Object.fromEntries(
      [...program.output().matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [
        name!,
        value!,
      ]),
    );
    const [gateway] = gatewaysOf(sandboxCompose);
    const { SOCIAL_API_URL, SOLANA_RPC_URL } = printed;
    const withPrinted = { ...printed, ...gateway.environment, SOCIAL_API_URL, SOLANA_RPC_URL };
    expect(readConfig(withPrinted)).toEqual(readConfig({ ...gateway.environment, ...printed }));

    const { client } = await startService({
      ...gateway.environment,
      ...here(sandbox),
      SOCIAL_API_URL,
      SOLANA_RPC_URL,
    });
    const { body } = await client.lookup("creator");
    expect((await client.collect(body.socialId)).body).toMatchObject({
      success: true,
      collected: "3.1000",
    });
  });
});

describeWithRedis("the Redis of", () => {
  it.each([
    ["compose.yaml", compose],
    ["compose.sandbox.yaml", sandboxCompose],
  ])(
    "%s serves the gateways, and refuses callers without a password",
    async (_name, { services, configs }: any) => {
      // The content of the configuration file, as options.
      const inFile = (services.redis.configs ?? []).flatMap(({ source }: any) =>
        `--${interpolate(configs[source].content)}`.split(" "),
      );
      const command = services.redis.command.replace(/^redis-server (?:\/\S+ )?/, "");
      const options = [...inFile, ...command.replaceAll('""', "").split(" ")];
      const server = await startRedis(() => options);
      onTestFinished(server.stop);
      expect((await sendRaw(server.url, "PING\r\nQUIT\r\n")).received).toContain("-NOAUTH");

      const environment = environmentOf(gatewaysOf({ services })[0]);
      const url = environment.REDIS_URL!.replace("redis:6379", `127.0.0.1:${server.port}`);
      const { admin } = await startService({
        ...sandbox.env,
        ...environment,
        ...here(sandbox),
        FEE_PAYER_KEYPAIR: sandbox.env.FEE_PAYER_KEYPAIR,
        REDIS_URL: url,
      });
      await eventually(async () => {
        expect((await admin.request("/metrics")).body).toContain("tributary_redis_up 1\n");
      });
    },
  );
});
