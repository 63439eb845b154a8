import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";
import { createClient } from "./client.ts";
import { runMain } from "./program.ts";
import type { TestSandbox } from "./sandbox.ts";
import { AMPLE_DEADLINES } from "./world.ts";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
export const parseFile = (path: string) => parse(read(path), { merge: true });

export const compose = parseFile("compose.yaml");
export const gatewaysOf = ({ services }: any): any[] =>
  Object.entries<any>(services)
    .filter(([name]) => name.startsWith("gateway-"))
    .map(([, service]) => service);

/** All manifests in `deploy`. */
export const manifests: any[] = readdirSync(join(ROOT, "deploy"))
  .filter((file) => file.endsWith(".yaml"))
  .flatMap((file) =>
    parseAllDocuments(read(join("deploy", file))).map((manifest) => manifest.toJS()),
  );
export const manifestOf = (kind: string, name = "tributary") =>
  manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
/** The template of the gateway's pods. */
export const pod = manifestOf("Deployment").spec.template;
export const secret: Record<string, string> = manifestOf("Secret").stringData;
/** The gateway's variables in a pod. */
export const podEnv: Record<string, string> = Object.fromEntries(
  pod.spec.containers[0].env.map(({ name, value, valueFrom }: any) => [
    name,
    value ?? secret[valueFrom.secretKeyRef.key],
  ]),
);

/** What differs between the operator's machine and this one: ports, addresses and Redis. */
export const here = ({ env }: TestSandbox) => ({
  ...AMPLE_DEADLINES,
  HOST: "127.0.0.1",
  PORT: "0",
  ADMIN_PORT: "0",
  REDIS_URL: "",
  SOCIAL_API_URL: env.SOCIAL_API_URL,
  SOLANA_RPC_URL: env.SOLANA_RPC_URL,
});

/** Runs a service with these variables, and returns a client for each of its ports. */
export async function startService(env: Record<string, string>) {
  const program = runMain(env);
  const client = createClient(await program.address(/"url":"(http[^"]+)"/));
  const admin = createClient(await program.address(/"adminUrl":"(http[^"]+)"/));
  return { client, admin };
}
