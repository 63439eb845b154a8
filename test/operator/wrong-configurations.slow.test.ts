import { once } from "node:events";
import { createServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createCertificate, trust, trustCertificate } from "../support/certificate.ts";
import { runMain } from "../support/program.ts";
import { startTestSandbox, type TestSandbox } from "../support/sandbox.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

type Environment = Record<string, string>;

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startTestSandbox();
  for (const { faults } of [sandbox.rpc, sandbox.secondRpc])
    faults.add({ when: advance, then: "reset" });
});
afterAll(() => sandbox.close());

/** Advances the slots at each call that reads one, and replaces no answer. */
function advance({ method }: { method: string }): boolean {
  if (method === "getSlot") sandbox.chain.advanceSlots(5);
  return false;
}

/** Runs the doctor. Returns what it blames, and all it prints. */
async function examine(env: Environment) {
  const program = runMain({ ...sandbox.env, ...AMPLE_DEADLINES, PORT: "0", ...env }, ["doctor"]);
  await program.exitCode();
  const output = program.output();
  const blamed = [...output.matchAll(/^(?:WRONG {2}|check {2}| {2}- )(\w+)/gm)];
  return { output, blamed: [...new Set(blamed.map(([, name]) => name!))].toSorted() };
}

/** Starts a server with TLS until the test ends. Returns its port. */
async function startTls(options: ServerOptions, host = "127.0.0.1"): Promise<number> {
  const server = createServer(options).listen(0, host);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const untrusted = async () => `https://127.0.0.1:${await startTls(createCertificate())}`;
const expired = async () =>
  `https://127.0.0.1:${await startTls(trust(createCertificate("200601000000Z")))}`;
const otherName = async () =>
  `https://127.0.0.2:${await startTls(trustCertificate(), "127.0.0.2")}`;
const withoutTls = (url: string) => url.replace("http:", "https:");
const needsTls = async () => `http://127.0.0.1:${await startTls(createCertificate())}`;

const CONNECTIONS: readonly [string, () => Promise<string> | string, string, string][] = [
  ["an untrusted certificate", untrusted, "DEPTH_ZERO_SELF_SIGNED_CERT", "NODE_EXTRA_CA_CERTS"],
  ["an expired certificate", expired, "CERT_HAS_EXPIRED", "this machine's clock"],
  ["a certificate for another name", otherName, "ERR_TLS_CERT_ALTNAME_INVALID", "another name"],
  ["an unknown host", () => "http://no-host.invalid", "ENOTFOUND", "no host of this name"],
  ["a closed port", () => "http://127.0.0.1:1", "ECONNREFUSED", "nothing listens at this port"],
  [
    "https at a port without TLS",
    () => withoutTls(sandbox.rpc.url),
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "does not use TLS: correct the port, or use http://",
  ],
  [
    "http at a port with TLS",
    needsTls,
    "(UND_ERR_SOCKET|ECONNRESET)",
    "if it uses TLS, use https://",
  ],
];

describe("the doctor", () => {
  it("blames nothing in a configuration that works", async () => {
    expect(await examine({})).toMatchObject({ blamed: [] });
  });

  it.each(
    ["SOCIAL_API_URL", "SOLANA_RPC_URL"].flatMap((name) =>
      CONNECTIONS.map((connection) => [name, ...connection] as const),
    ),
  )("names %s and the cause: %s", async (name, _mistake, urlOf, code, remedy) => {
    const { output, blamed } = await examine({ [name]: await urlOf() });
    expect(output).toMatch(
      new RegExp(`${name}: .* does not answer.* \\(${code}\\).*: .*${remedy}`),
    );
    expect(blamed).toEqual([name]);
  });
});
