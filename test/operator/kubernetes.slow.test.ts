import { existsSync } from "node:fs";
import { BlockList } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { readConfig, VARIABLE_NAMES } from "../../src/config.ts";
import {
  compose,
  gatewaysOf,
  here,
  manifestOf,
  manifests,
  pod,
  podEnv,
  read,
  ROOT,
  secret,
  startService,
} from "../support/deployment-files.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { eventually } from "../support/eventually.ts";
import { runMain } from "../support/program.ts";
import { startRedis } from "../support/redis-server.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";

const deployment = manifestOf("Deployment");
const [container] = pod.spec.containers;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

it("docs/operating.md has the memory that compose.yaml and the manifests give a container", () => {
  const [, mebibytes] = /A container needs (\d+) MiB/.exec(read("docs/operating.md"))!;
  expect(container.resources.limits.memory).toBe(`${mebibytes}Mi`);
  for (const { deploy } of gatewaysOf(compose))
    expect(deploy.resources.limits.memory).toBe(`${mebibytes}m`);
});

it("docs/prometheus.yaml scrapes the metrics of the manifests' pods, and no other port", () => {
  const withoutComments = read("docs/prometheus.yaml").replace(
    /^ {4}# (?=kube|relabel| )/gm,
    "    ",
  );
  const {
    rule_files,
    scrape_configs: [job],
  } = parse(withoutComments);
  expect(rule_files.map((file: string) => existsSync(join(ROOT, "docs", file)))).toEqual([true]);
  expect(job.job_name).toBe("tributary");
  const [keep] = job.relabel_configs;
  expect(keep.action).toBe("keep");
  const scraped = manifests
    .filter(({ kind }) => kind === "Deployment")
    .flatMap(({ spec: { template } }) =>
      template.spec.containers[0].ports.map((port: any) => {
        const labels: Record<string, string> = {
          __meta_kubernetes_pod_label_app_kubernetes_io_name:
            template.metadata.labels["app.kubernetes.io/name"],
          __meta_kubernetes_pod_container_port_name: port.name,
        };
        return { port, text: keep.source_labels.map((label: string) => labels[label]).join(";") };
      }),
    )
    .filter(({ text }) => new RegExp(`^(?:${keep.regex})$`).test(text));
  expect(scraped.map(({ port }) => String(port.containerPort))).toEqual([podEnv.ADMIN_PORT]);
});

describe("the Kubernetes manifests", () => {
  it("set only variables that exist, and all required ones", () => {
    expect(VARIABLE_NAMES).toEqual(expect.arrayContaining(Object.keys(podEnv)));
    const { FEE_PAYER_KEYPAIR, ESCROW_PROGRAM_ID } = sandbox.env;
    const env = { ...podEnv, SOCIAL_API_TOKEN: "x", FEE_PAYER_KEYPAIR };
    expect(readConfig({ ...env, ESCROW_PROGRAM_ID }).nodeEnv).toBe("production");
  });

  it("do not start before the operator has set the escrow program", async () => {
    const program = runMain(podEnv);
    expect(await program.exitCode()).toBe(1);
    expect(program.output()).toMatch(
      /- ESCROW_PROGRAM_ID: expected an address .* got "the escrow program"/,
    );
  });

  it("take every secret from the secret, and the key from a file of it", () => {
    for (const { name, value, valueFrom } of container.env) {
      if (["SOCIAL_API_TOKEN", "SOLANA_RPC_URL", "REDIS_URL"].includes(name))
        expect(value).toBeUndefined();
      if (valueFrom) expect(Object.keys(secret)).toContain(valueFrom.secretKeyRef.key);
    }
    const [mount] = container.volumeMounts;
    const [{ secret: volume }] = pod.spec.volumes;
    expect(podEnv.FEE_PAYER_KEYPAIR).toBe(`${mount.mountPath}/${volume.items[0].path}`);
    expect(Object.keys(secret)).toContain(volume.items[0].key);
    expect(volume.defaultMode).toBe(0o440);
  });

  it("run a service that answers their probes, and hides metrics from the service's port", async () => {
    const { client, admin } = await startService({ ...podEnv, ...sandbox.env, ...here(sandbox) });
    for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
      expect(container[probe].httpGet.port).toBe("http");
    }
    const { startupProbe, livenessProbe, readinessProbe } = container;
    expect([startupProbe.httpGet.path, livenessProbe.httpGet.path]).toEqual(["/livez", "/livez"]);
    expect((await client.request("/livez")).status).toBe(200);
    expect(readinessProbe.httpGet.path).toBe("/readyz");
    const ready = await client.request("/readyz");
    expect([ready.status, ready.body]).toEqual([200, { status: "ok" }]);
    expect((await client.request("/metrics")).status).toBe(404);
    expect((await admin.request("/metrics")).status).toBe(200);
  });

  it("send callers to the public port only", () => {
    const ports = Object.fromEntries(
      container.ports.map((port: any) => [port.name, String(port.containerPort)]),
    );
    expect(ports).toEqual({ http: podEnv.PORT, admin: podEnv.ADMIN_PORT });
    expect(manifestOf("Service").spec.ports.map(({ targetPort }: any) => targetPort)).toEqual([
      "http",
    ]);
    const allowed = manifestOf("NetworkPolicy").spec.ingress.map(
      ({ ports: [{ port }] }: any) => port,
    );
    expect(allowed).toEqual(["http", "admin"]);
  });

  it("let the pods reach their upstreams and the collector of traces, but no metadata service, and not the cluster", () => {
    const { egress } = manifestOf("NetworkPolicy").spec;
    const ports: number[] = egress.flatMap((rule: any) => rule.ports.map(({ port }: any) => port));
    const [, collector] = /OTEL_EXPORTER_OTLP_ENDPOINT=(\S+)/.exec(read("docs/operating.md"))!;
    const urls = [
      podEnv.SOCIAL_API_URL,
      ...podEnv.SOLANA_RPC_URL!.split(","),
      podEnv.REDIS_URL,
      collector,
    ];
    for (const url of urls) expect(ports, url).toContain(Number(new URL(url!).port || 443));

    const excepted = new BlockList();
    const blocks = egress.flatMap(({ to }: any) =>
      to.map(({ ipBlock }: any) => ipBlock ?? []).flat(),
    );
    for (const range of blocks.flatMap(({ except = [] }: any) => except)) {
      const [address, bits] = range.split("/");
      excepted.addSubnet(address, Number(bits), address.includes(":") ? "ipv6" : "ipv4");
    }
    for (const address of [
      "169.254.169.254",
      "169.254.170.2",
      "100.100.100.200",
      "168.63.129.16",
      "10.96.0.1",
      "172.20.0.1",
      "192.168.1.1",
      "100.64.0.1",
    ]) {
      expect(excepted.check(address), address).toBe(true);
    }
    for (const address of ["fe80::a9fe:a9fe", "fd00:ec2::254", "fd20:ce::254", "fd12:3456::1"]) {
      expect(excepted.check(address, "ipv6"), address).toBe(true);
    }
    expect(excepted.check("1.1.1.1") || excepted.check("2606:4700::1111", "ipv6")).toBe(false);
  });

  it("select the pods of the deployment", () => {
    const { labels } = pod.metadata;
    for (const selector of [
      deployment.spec.selector.matchLabels,
      manifestOf("Service").spec.selector,
      manifestOf("PodDisruptionBudget").spec.selector.matchLabels,
      manifestOf("NetworkPolicy").spec.podSelector.matchLabels,
    ]) {
      expect(selector).toEqual(labels);
    }
    expect(
      deployment.spec.replicas - manifestOf("PodDisruptionBudget").spec.maxUnavailable,
    ).toBeGreaterThan(0);
  });

  it("give a stopping pod enough time", () => {
    const sleep = Number(container.lifecycle.preStop.exec.command[1]);
    const { collectTimeoutMs } = readConfig(sandbox.env);
    expect(pod.spec.terminationGracePeriodSeconds).toBe(sleep + collectTimeoutMs / 1_000 + 15);
  });
});

describeWithRedis("the Redis of the manifests", () => {
  const redis = manifestOf("Deployment", "redis").spec.template;
  const [redisContainer] = redis.spec.containers;
  /** The operator's password in place of the placeholder. */
  const withPassword = (text: string) => text.replace("the password", "password");

  it("is where the secret says, and only the gateway's pods reach it", () => {
    const { hostname, port } = new URL(podEnv.REDIS_URL!);
    const { metadata, spec } = manifestOf("Service", hostname);
    expect([metadata.name, String(spec.ports[0].port)]).toEqual([hostname, port]);
    const { labels } = redis.metadata;
    const policy = manifestOf("NetworkPolicy", "redis").spec;
    for (const selector of [
      manifestOf("Deployment", "redis").spec.selector.matchLabels,
      spec.selector,
      policy.podSelector.matchLabels,
    ]) {
      expect(selector).toEqual(labels);
    }
    expect(policy.ingress.map(({ from }: any) => from)).toEqual([
      [{ podSelector: { matchLabels: pod.metadata.labels } }],
    ]);
    expect(redisContainer.ports.map(({ containerPort }: any) => String(containerPort))).toEqual([
      port,
    ]);
    const [mount] = redisContainer.volumeMounts;
    const [{ secret: volume }] = redis.spec.volumes;
    expect(redisContainer.command).toEqual([
      "redis-server",
      `${mount.mountPath}/${volume.items[0].path}`,
    ]);
    expect(Object.keys(secret)).toContain(volume.items[0].key);
  });

  it("serves the gateway with the password of the secret", async () => {
    const [directive, password] = withPassword(secret["redis.conf"]!).split(" ");
    const server = await startRedis(() => [`--${directive!}`, password!, ...redisContainer.args]);
    onTestFinished(server.stop);
    const url = withPassword(podEnv.REDIS_URL!).replace("redis:6379", `127.0.0.1:${server.port}`);
    const { client, admin } = await startService({
      ...podEnv,
      ...sandbox.env,
      ...here(sandbox),
      REDIS_URL: url,
    });
    expect((await client.lookup("creator")).status).toBe(200);
    await eventually(async () => {
      expect((await admin.request("/metrics")).body).toContain("tributary_redis_up 1\n");
    });
  });
});
