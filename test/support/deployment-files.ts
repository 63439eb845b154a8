import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";
import { createClient } from "./client.ts";
import { runMain } from "./program.ts";
import type { TestSandbox } from "./sandbox.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { AMPLE_DEADLINES } from "./world.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
export const parseFile = (path: string) => parse(read(path), { merge: true });

/** The code blocks of a section of docs/operating.md. */
function blocksUnder(heading: string): string[] {
  const sections = read("docs/operating.md").split(/^#{2,3} (?=\w.*\n\n)/m);
  const section = sections.find((text) => text.startsWith(`${heading}\n`))!;
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!);
}

export const compose = parseFile("compose.yaml");
export const gatewaysOf = ({ services }: any): any[] =>
  Object.entries<any>(services)
    .filter(([name]) => name.startsWith("gateway-"))
    .map(([, service]) => service);

/** All manifests in `deploy`. */
const manifests: any[] = readdirSync(join(ROOT, "deploy"))
  .filter((file) => file.endsWith(".yaml"))
  .flatMap((file) =>
    parseAllDocuments(read(join("deploy", file))).map((manifest) => manifest.toJS()),
  );
export const manifestOf = (kind: string, name = "tributary") =>
  manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name);
/** The template of the gateway's pods. */
export const pod = manifestOf("Deployment").spec.template;
/** The secret that docs/operating.md makes from files. */
export const secret = followKubernetesRecipe();
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

/** The secret that docs/operating.md's commands for Kubernetes create, run without a cluster. */
function followKubernetesRecipe(): Record<string, string> {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "fee-payer.json"), "[]");
  const kubectl = 'kubectl() { echo "$*"; }';
  execFileSync("bash", ["-ec", [kubectl, ...blocksUnder("Kubernetes")].join("\n")], {
    cwd: folder,
  });
  const files = readdirSync(join(folder, "secret"));
  return Object.fromEntries(
    files.map((file) => [file, readFileSync(join(folder, "secret", file), "utf8")]),
  );
}
