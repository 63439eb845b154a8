import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readConfig, VARIABLE_NAMES } from "../../src/config.ts";
import { createClient } from "../support/client.ts";
import { eventually } from "../support/eventually.ts";
import { runMain } from "../support/program.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const parseFile = (path: string) => parse(read(path), { merge: true });

const compose = parseFile("compose.yaml");
const sandboxCompose = parseFile("compose.sandbox.yaml");
const gatewaysOf = ({ services }: any): any[] =>
  Object.entries<any>(services)
    .filter(([name]) => name.startsWith("gateway-"))
    .map(([, service]) => service);

const manifests = readdirSync(join(ROOT, "deploy")).map((file) => parseFile(join("deploy", file)));
const ofKind = (kind: string) => manifests.find((manifest) => manifest.kind === kind);
const deployment = ofKind("Deployment");
const pod = deployment.spec.template;
const [container] = pod.spec.containers;
const secret: Record<string, string> = ofKind("Secret").stringData;
const podEnv: Record<string, string> = Object.fromEntries(
  container.env.map(({ name, value, valueFrom }: any) => [name, value ?? secret[valueFrom.secretKeyRef.key]]),
);

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

/** What differs between the operator's machine and this one: ports, addresses and Redis. */
const here = () => ({
  ...AMPLE_DEADLINES,
  HOST: "127.0.0.1",
  PORT: "0",
  ADMIN_PORT: "0",
  REDIS_URL: "",
  SOCIAL_API_URL: sandbox.env.SOCIAL_API_URL,
  SOLANA_RPC_URL: sandbox.env.SOLANA_RPC_URL,
});

/** Runs a service with these variables, and returns a client for each of its ports. */
async function start(env: Record<string, string>) {
  const program = runMain(env);
  const client = createClient(await program.address(/"url":"(http[^"]+)"/));
  const admin = createClient(await program.address(/"adminUrl":"(http[^"]+)"/));
  return { client, admin };
}

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
    for (const { environment } of gatewaysOf(compose)) {
      const { FEE_PAYER_KEYPAIR } = sandbox.env;
      const config = readConfig({ ...sandbox.env, ...environment, FEE_PAYER_KEYPAIR });
      expect(config).toMatchObject({ host: "0.0.0.0", port: 4000, adminPort: 4001, basePath: "" });
    }
    for (const { environment } of gatewaysOf(sandboxCompose)) {
      expect(readConfig(environment).isProduction).toBe(true);
    }
  });

  it("give a stopping process enough time", () => {
    for (const service of [...gatewaysOf(compose), ...gatewaysOf(sandboxCompose)]) {
      const { timeoutMs } = readConfig(sandbox.env).collect;
      expect(Number.parseInt(service.stop_grace_period)).toBeGreaterThanOrEqual(timeoutMs / 1000 + 15);
    }
  });

  it("name existing files, build targets and replicas", () => {
    for (const { services } of [compose, sandboxCompose]) {
      for (const { volumes = [], build } of Object.values<any>(services)) {
        for (const volume of volumes) expect(existsSync(join(ROOT, volume.split(":")[0])), volume).toBe(true);
        if (build?.target) expect(read("Dockerfile")).toContain(` AS ${build.target}\n`);
      }
      const replicas = Object.keys(services).filter((name) => name.startsWith("gateway-"));
      expect(read("Caddyfile")).toContain(`{$REPLICAS:${replicas.map((name) => `${name}:4000`).join(" ")}}`);
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
      [...program.output().matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]),
    );
    const [gateway] = gatewaysOf(sandboxCompose);
    const { SOCIAL_API_URL, SOLANA_RPC_URL } = printed;
    const withPrinted = { ...printed, ...gateway.environment, SOCIAL_API_URL, SOLANA_RPC_URL };
    expect(readConfig(withPrinted)).toEqual(readConfig({ ...gateway.environment, ...printed }));

    const { client } = await start({
      ...gateway.environment,
      ...here(),
      SOCIAL_API_URL,
      SOLANA_RPC_URL,
    });
    const { body } = await client.lookup("creator");
    expect((await client.collect(body.socialId)).body).toMatchObject({ success: true, collected: "3.1000" });
  });
});

describe("the Kubernetes manifests", () => {
  it("set only variables that exist, and all required ones", () => {
    expect(VARIABLE_NAMES).toEqual(expect.arrayContaining(Object.keys(podEnv)));
    const { FEE_PAYER_KEYPAIR, ESCROW_PROGRAM_ID } = sandbox.env;
    const env = { ...podEnv, SOCIAL_API_TOKEN: "x", FEE_PAYER_KEYPAIR };
    expect(readConfig({ ...env, ESCROW_PROGRAM_ID }).isProduction).toBe(true);
  });

  it("do not start before the operator has set the escrow program", async () => {
    const program = runMain(podEnv);
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toMatch(/- ESCROW_PROGRAM_ID: expected an address .* got "the escrow program"/);
  });

  it("take every secret from the secret, and the key from a file of it", () => {
    for (const { name, value, valueFrom } of container.env) {
      if (["SOCIAL_API_TOKEN", "SOLANA_RPC_URL", "REDIS_URL"].includes(name)) expect(value).toBeUndefined();
      if (valueFrom) expect(Object.keys(secret)).toContain(valueFrom.secretKeyRef.key);
    }
    const [mount] = container.volumeMounts;
    const [{ secret: volume }] = pod.spec.volumes;
    expect(podEnv.FEE_PAYER_KEYPAIR).toBe(`${mount.mountPath}/${volume.items[0].path}`);
    expect(Object.keys(secret)).toContain(volume.items[0].key);
    expect(volume.defaultMode).toBe(0o440);
  });

  it("run a service that answers their probes, and hides metrics from the service's port", async () => {
    const { client, admin } = await start({ ...podEnv, ...sandbox.env, ...here() });
    const { livenessProbe, readinessProbe } = container;
    expect((await client.request(livenessProbe.httpGet.path)).status).toBe(200);
    const ready = await client.request(readinessProbe.httpGet.path);
    expect([ready.status, ready.body]).toEqual([200, { status: "ok" }]);
    expect((await client.request("/metrics")).status).toBe(404);
    expect((await admin.request("/metrics")).status).toBe(200);
  });

  it("send callers to the public port only", () => {
    const ports = Object.fromEntries(
      container.ports.map((port: any) => [port.name, String(port.containerPort)]),
    );
    expect(ports).toEqual({ http: podEnv.PORT, admin: podEnv.ADMIN_PORT });
    expect(ofKind("Service").spec.ports.map(({ targetPort }: any) => targetPort)).toEqual(["http"]);
    const allowed = ofKind("NetworkPolicy").spec.ingress.map(({ ports: [{ port }] }: any) => port);
    expect(allowed).toEqual(["http", "admin"]);
  });

  it("select the pods of the deployment", () => {
    const { labels } = pod.metadata;
    for (const selector of [
      deployment.spec.selector.matchLabels,
      ofKind("Service").spec.selector,
      ofKind("PodDisruptionBudget").spec.selector.matchLabels,
      ofKind("NetworkPolicy").spec.podSelector.matchLabels,
    ]) {
      expect(selector).toEqual(labels);
    }
    expect(deployment.spec.replicas - ofKind("PodDisruptionBudget").spec.maxUnavailable).toBeGreaterThan(0);
  });

  it("give a stopping pod enough time", () => {
    const sleep = Number(container.lifecycle.preStop.exec.command[1]);
    const { timeoutMs } = readConfig(sandbox.env).collect;
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(sleep + timeoutMs / 1000 + 15);
  });
});
