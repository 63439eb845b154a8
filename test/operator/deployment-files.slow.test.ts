import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import manifest from "../../package.json" with { type: "json" };
import { readConfig, VARIABLE_NAMES } from "../../src/config.ts";
import { createClient } from "../support/client.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { runMain } from "../support/program.ts";
import { startRedis } from "../support/redis-server.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(resolve(ROOT, path), "utf8");
const parseFile = (path: string) => parse(read(path), { merge: true });

const compose = parseFile("compose.yaml");
const gatewaysOf = ({ services }: any): any[] =>
  Object.entries<any>(services)
    .filter(([name]) => name.startsWith("gateway-"))
    .map(([, service]) => service);

/** All manifests in `deploy`. */
const manifests: any[] = readdirSync(join(ROOT, "deploy"))
  .filter((file) => file.endsWith(".yaml"))
  .flatMap((file) =>
    parseAllDocuments(read(join("deploy", file))).map((manifest) => manifest.toJS()),
  );
const manifestOf = (kind: string, name = "tributary") =>
  manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
/** The template of the gateway's pods. */
const pod = manifestOf("Deployment").spec.template;
/** The secret that docs/operating.md makes from files for Kubernetes, run without a cluster. */
function createSecret(): Record<string, string> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "fee-payer.json"), "[]");
  const [, commands] = /^```sh\n(mkdir -m 700 secret\n.*?)^```$/ms.exec(read("docs/operating.md"))!;
  execFileSync("bash", ["-ec", `kubectl() { echo "$*"; }\n${commands!}`], { cwd: folder });
  const files = readdirSync(join(folder, "secret"));
  return Object.fromEntries(files.map((file) => [file, read(join(folder, "secret", file))]));
}
const secret = createSecret();
/** The gateway's variables in a pod. */
const podEnv: Record<string, string> = Object.fromEntries(
  pod.spec.containers[0].env.map(({ name, value, valueFrom }: any) => [
    name,
    value ?? secret[valueFrom.secretKeyRef.key],
  ]),
);

/** What differs between the operator's machine and this one: ports, addresses and Redis. */
const here = ({ env }: TestSandbox) => ({
  ...AMPLE_DEADLINES,
  HOST: "127.0.0.1",
  PORT: "0",
  ADMIN_PORT: "0",
  REDIS_URL: "",
  SOCIAL_API_URL: env.SOCIAL_API_URL,
  SOLANA_RPC_URL: env.SOLANA_RPC_URL,
});

/** Runs a service with these variables, and returns a client for each of its ports. */
async function startService(env: Record<string, string>) {
  const program = runMain(env);
  const client = createClient(await program.address(/"url":"(http[^"]+)"/));
  const admin = createClient(await program.address(/"adminUrl":"(http[^"]+)"/));
  return { client, admin };
}

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

const [container] = pod.spec.containers;
const unit = read("deploy/tributary.service");
const inUnit = (key: string) => new RegExp(`^${key}=(.*)$`, "m").exec(unit)?.[1];
const sandboxCompose = parseFile("compose.sandbox.yaml");

/** A service's variables, with Docker Compose's defaults and the operator's password. */
const composeEnv = ({ environment }: any): Record<string, string> =>
  JSON.parse(
    JSON.stringify(environment)
      .replace(/\$\{REDIS_PASSWORD(?::\?[^}]*)?\}/g, "the-password")
      .replace(/\$\{[A-Z_]+:-([^}]*)\}/g, "$1"),
  );

it("the variables of all deployments exist, and are valid", () => {
  const { FEE_PAYER_KEYPAIR, ESCROW_PROGRAM_ID } = sandbox.env;
  const inCompose = gatewaysOf(compose).map(composeEnv);
  expect(inCompose).toHaveLength(2);
  for (const env of inCompose)
    expect(readConfig({ ...sandbox.env, ...env, FEE_PAYER_KEYPAIR })).toMatchObject({
      ...{ host: "0.0.0.0", port: 4000, adminPort: 4001 },
      handleAllowUnderscore: podEnv.HANDLE_ALLOW_UNDERSCORE === "true",
    });
  const inPod = { ...podEnv, SOCIAL_API_TOKEN: "x", FEE_PAYER_KEYPAIR, ESCROW_PROGRAM_ID };
  const inSandbox = gatewaysOf(sandboxCompose).map(composeEnv);
  for (const env of [inPod, ...inSandbox]) expect(readConfig(env).nodeEnv).toBe("production");
  for (const env of [podEnv, ...inCompose, ...inSandbox])
    expect(VARIABLE_NAMES).toEqual(expect.arrayContaining(Object.keys(env)));
});

it("pods have all they name of the secret, and the key from a file of it", () => {
  expect(Object.values(podEnv)).not.toContain(undefined);
  const [mount] = container.volumeMounts;
  const [{ secret: volume }] = pod.spec.volumes;
  expect(podEnv.FEE_PAYER_KEYPAIR).toBe(`${mount.mountPath}/${volume.items[0].path}`);
  expect(Object.keys(secret)).toContain(volume.items[0].key);
  expect(volume.defaultMode).toBe(0o440);
});

it("only the admin port has metrics, which no deployment publishes", async () => {
  for (const service of [...gatewaysOf(compose), ...gatewaysOf(sandboxCompose)])
    expect(service.ports).toBeUndefined();
  const [job] = parse(sandboxCompose.configs.prometheus.content).scrape_configs;
  expect(job.static_configs[0].targets).toEqual(["gateway-1:4001", "gateway-2:4001"]);
  const { ports } = manifestOf("Service").spec;
  expect(ports.map(({ targetPort }: any) => targetPort)).toEqual(["http"]);

  const { client, admin } = await startService({ ...podEnv, ...sandbox.env, ...here(sandbox) });
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
    const { port, path } = container[probe].httpGet;
    expect([port, (await client.request(path)).status]).toEqual(["http", 200]);
  }
  expect((await client.request("/metrics")).status).toBe(404);
  expect((await admin.request("/metrics")).status).toBe(200);
});

it("a service that stops has time for its transactions", () => {
  const seconds = readConfig(sandbox.env).collectTimeoutMs / 1_000 + 15;
  expect(Number(inUnit("TimeoutStopSec"))).toBe(seconds);
  const sleep = Number(container.lifecycle.preStop.exec.command[1]);
  expect(pod.spec.terminationGracePeriodSeconds).toBe(sleep + seconds);
});

it("systemd and the image run the command of npm start", () => {
  const command = manifest.scripts.start.replace("exec ", "");
  expect(inUnit("ExecStart")).toBe(command);
  const [, inImage] = /CMD (.*)\n$/.exec(read("Dockerfile"))!;
  expect(JSON.parse(inImage!).join(" ")).toBe(command);
});

describeWithRedis("the Redis of the manifests", () => {
  it("serves the gateway with the password of the secret", async () => {
    const { args } = manifestOf("Deployment", "tributary-redis").spec.template.spec.containers[0];
    const [directive, password] = secret["redis.conf"]!.split(" ");
    const server = await startRedis(() => [`--${directive!}`, password!, ...args]);
    onTestFinished(server.stop);
    const REDIS_URL = podEnv.REDIS_URL!.replace("tributary-redis:6379", `127.0.0.1:${server.port}`);
    const env = { ...podEnv, ...sandbox.env, ...here(sandbox), REDIS_URL };
    const { admin } = await startService(env);
    await expect
      .poll(async () => (await admin.request("/metrics")).body)
      .toContain("tributary_redis_up 1\n");
  });
});
