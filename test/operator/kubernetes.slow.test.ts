import { BlockList } from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { readConfig, VARIABLE_NAMES } from "../../src/config.ts";
import {
  here,
  manifestOf,
  pod,
  podEnv,
  read,
  secret,
  startService,
} from "../support/deployment-files.ts";
import { describeWithRedis } from "../support/describe-with-redis.ts";
import { eventually } from "../support/eventually.ts";
import { runMain } from "../support/program.ts";
import { startRedis } from "../support/redis-server.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";

const [container] = pod.spec.containers;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
});
afterAll(() => sandbox.close());

describe("the Kubernetes manifests", () => {
  it("run no image before the operator has named it by its digest", () => {
    expect(container.image).toMatch(/@sha256:/);
    expect(container.image).not.toMatch(/@sha256:[0-9a-f]{64}$/);
  });

  it("set only variables that exist, and all required ones", () => {
    expect(VARIABLE_NAMES).toEqual(expect.arrayContaining(Object.keys(podEnv)));
    const { FEE_PAYER_KEYPAIR, ESCROW_PROGRAM_ID } = sandbox.env;
    const env = { ...podEnv, SOCIAL_API_TOKEN: "x", FEE_PAYER_KEYPAIR };
    expect(readConfig({ ...env, ESCROW_PROGRAM_ID }).nodeEnv).toBe("production");
  });

  it("do not start before the operator has set the escrow program", async () => {
    const program = runMain(podEnv);
    expect(await program.exitCode()).toBe(1);
    expect(JSON.parse(program.output())).toMatchObject({
      level: 50,
      msg: expect.stringMatching(/- ESCROW_PROGRAM_ID: expected an address .* got "the escrow pr/),
    });
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

  it("run as a user and a group that are not root", () => {
    for (const name of ["tributary", "tributary-redis"]) {
      const { securityContext } = manifestOf("Deployment", name).spec.template.spec;
      expect(securityContext.runAsNonRoot).toBe(true);
      for (const id of [securityContext.runAsUser, securityContext.runAsGroup])
        expect(id).toBeGreaterThan(0);
    }
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

  it("give a stopping pod enough time", () => {
    const sleep = Number(container.lifecycle.preStop.exec.command[1]);
    const { collectTimeoutMs } = readConfig(sandbox.env);
    expect(pod.spec.terminationGracePeriodSeconds).toBe(sleep + collectTimeoutMs / 1_000 + 15);
  });
});

describeWithRedis("the Redis of the manifests", () => {
  const redis = manifestOf("Deployment", "tributary-redis").spec.template;
  const [redisContainer] = redis.spec.containers;

  it("serves the gateway with the password of the secret", async () => {
    const [directive, password] = secret["redis.conf"]!.split(" ");
    expect(password).toMatch(/^[0-9a-f]{64}$/);
    const server = await startRedis(() => [`--${directive!}`, password!, ...redisContainer.args]);
    onTestFinished(server.stop);
    const url = podEnv.REDIS_URL!.replace("tributary-redis:6379", `127.0.0.1:${server.port}`);
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
