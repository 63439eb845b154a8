import { once } from "node:events";
import { createServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { Keypair } from "@solana/web3.js";
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

const QUOTA = JSON.stringify({ error: { code: -32005, message: "daily request count exceeded" } });
const SUSPENDED = JSON.stringify({ title: "Forbidden", detail: "Your app is suspended." });
const PAGE = "<html><style>b {}</style><h1>Not here</h1>\n<b>Bad \u0007path</b></html>";

/** An upstream's refusals: the variable, the answer to all calls, and what the doctor says. */
const REFUSALS: readonly [string, { status: number; body: string }, RegExp][] = [
  ["SOLANA_RPC_URL", { status: 429, body: QUOTA }, /status 429 "daily request count exceeded"/],
  ["SOLANA_RPC_URL", { status: 401, body: "no such key" }, /"no such key"\): check the key/],
  ["SOLANA_RPC_URL", { status: 403, body: "IP not allowed" }, /status 403 "IP not allowed"/],
  ["SOLANA_RPC_URL", { status: 404, body: PAGE }, /status 404 "Not here Bad path"/],
  ["SOLANA_RPC_URL", { status: 502, body: "" }, /\(status 502\): check the URL/],
  ["SOLANA_RPC_URL", { status: 200, body: "hello" }, /\(unreadable\): check the URL/],
  ["SOCIAL_API_TOKEN", { status: 403, body: SUSPENDED }, /403 "Your app is suspended\."\)/],
  ["SOCIAL_API_TOKEN", { status: 401, body: "{}" }, /refuses SOCIAL_API_TOKEN \(401\)/],
  ["SOCIAL_API_TOKEN", { status: 402, body: "{}" }, /\(402\): .*add credit/],
  ["SOCIAL_API_URL", { status: 403, body: PAGE }, /blocks this machine's address \(blocked\)/],
  ["SOCIAL_API_URL", { status: 404, body: PAGE }, /404 "Not here Bad path"/],
  ["SOCIAL_API_URL", { status: 503, body: "over capacity" }, /503 "over capacity"/],
  ["SOCIAL_API_URL", { status: 200, body: "hello" }, /as expected \(unreadable\)/],
  ["SOCIAL_API_TOKEN", { status: 429, body: "{}" }, /allows no calls for 60 s/],
];

const ADDRESS = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";

/** The variable, a wrong value, and what the doctor says. */
const VALUES: readonly [string, string, string][] = [
  ["SOCIAL_API_URL", "", "missing. Expected the base URL"],
  ["SOCIAL_API_URL", "api.example", "expected a URL that starts with http:// or https://"],
  ["SOCIAL_API_URL", "https://api.example/2", "expected the base URL without /2"],
  ["SOCIAL_API_URL", "https://api.example?a=b", "without query and fragment"],
  ["SOCIAL_API_URL", "https://user:a@api.example", "set the token in SOCIAL_API_TOKEN"],
  ["SOCIAL_API_URL", "'https://api.example'", "expected no quotes around the value"],
  ["SOCIAL_API_TOKEN", "", "missing. Expected the app-only bearer token"],
  ["SOCIAL_API_TOKEN", "Bearer abc", "without the word Bearer"],
  ["SOCIAL_API_TOKEN", "bearer%20abc", "without the word Bearer"],
  ["SOCIAL_API_TOKEN", '"abc"', "expected no quotes around the value"],
  ["SOCIAL_API_TOKEN", "a b", "expected printable ASCII without spaces"],
  ["SOCIAL_API_TOKEN", "abc\n", "expected printable ASCII without spaces"],
  ["SOCIAL_API_TOKEN", "a-token-that-is-wrong", "refuses SOCIAL_API_TOKEN (401"],
  ["SOLANA_RPC_URL", "", "missing. Expected one or more JSON-RPC URLs"],
  ["SOLANA_RPC_URL", "rpc.example", "expected a URL that starts with http:// or https://"],
  ["SOLANA_RPC_URL", "wss://rpc.example", "expected a URL that starts with http:// or https://"],
  ["SOLANA_RPC_URL", "https://a.example,", "entry 2 of 2 is empty"],
  ["SOLANA_RPC_URL", "https://a.example https://b.example", "entry 1 of 1 contains a space"],
  ["SOLANA_RPC_URL", "https://%ff@a.example", "to be percent-encoded"],
  ["FEE_PAYER_KEYPAIR", "", "missing. Expected the path of the fee payer's keypair file"],
  ["FEE_PAYER_KEYPAIR", "/no/such/file", "cannot be read as a file (ENOENT)"],
  ["FEE_PAYER_KEYPAIR", "/tmp", "cannot be read as a file (EISDIR)"],
  ["FEE_PAYER_KEYPAIR", "[1,2,3]", "expected"],
  ["FEE_PAYER_KEYPAIR", JSON.stringify([...Keypair.generate().secretKey]), "send SOL to it"],
  ["ESCROW_PROGRAM_ID", "", "missing. Expected the address of the escrow program"],
  ["ESCROW_PROGRAM_ID", "escrow", 'expected an address of 32 bytes in base58, got "escrow"'],
  ["ESCROW_PROGRAM_ID", ADDRESS.repeat(2), "got 86 characters"],
  ["ESCROW_PROGRAM_ID", "11111111111111111111111111111111", "nobody can withdraw"],
  ["ESCROW_PROGRAM_ID", Keypair.generate().publicKey.toBase58(), "there is no program"],
  ["ESCROW_SEED", "a".repeat(33), "expected at most 32 bytes"],
  ["ESCROW_SEED", '"social"', "the quotes around it are a part of the seed"],
  ["NODE_ENV", "prod", "expected development, test or production"],
  ["HOST", "[::]", "expected an address without brackets"],
  ["HOST", "192.0.2.1", "192.0.2.1 is no address of this machine (EADDRNOTAVAIL)"],
  ["HOST", "no-host.invalid", "no-host.invalid is no address of this machine (ENOTFOUND)"],
  ["HOST", "http://127.0.0.1", "is no address of this machine"],
  ["PORT", "http", "expected a whole number from 0 to 65535"],
  ["PORT", "70000", "expected a whole number from 0 to 65535"],
  ["PORT", '"4000"', "expected no quotes around the value"],
  ["ADMIN_PORT", "-1", "expected a whole number from 0 to 65535"],
  ["TRUST_PROXY", "1", "expected addresses or CIDR ranges"],
  ["TRUST_PROXY", "0.0.0.0/0", "but no /0"],
  ["TRUSTED_CALLERS", "app.example", "expected addresses or CIDR ranges"],
  ["HANDLE_ALLOW_UNDERSCORE", "yes", "expected true or false"],
  ["BASE_PATH", "api/", "expected a path such as /api"],
  ["PUBLIC_URL", "api.example", "expected a URL that starts with"],
  ["PUBLIC_URL", "https://api.example?a", "without user, password, query and fragment"],
  ["CORS_ORIGINS", "app.example", "expected * or origins such as https://app.example"],
  ["CORS_ORIGINS", "https://app.example/path", "entry 1 of 1"],
  ["CORS_ORIGINS", "https://*.example", "an origin with * matches no page"],
  ["LOG_LEVEL", "verbose", "expected one of trace, debug"],
  ["PLATFORM_PROGRAMS", "/programs", "has no effect: no sandbox starts"],
  ["RATE_LIMIT_MAX", "0", "expected a whole number from 1"],
  ["STREAMS_MAX", "many", "expected a whole number from 0"],
  ["SOCIAL_TIMEOUT_MS", "5s", "expected a whole number from 1"],
  ["SOCIAL_CACHE_SECONDS", "86401", "expected a whole number from 0 to 86400"],
  ["SOCIAL_QUEUE_MAX", "1.5", "expected a whole number from 0"],
  ["SOCIAL_READS_PER_HOUR", "unlimited", "expected a whole number from 0"],
  ["SOCIAL_READS_PER_HOUR", "0", "0 means unlimited"],
  ["RPC_CALLS_PER_SECOND", "0", "expected a whole number from 1"],
  ["RPC_CALLS_PER_SECOND", "1", "with less than 8 for each replica"],
  ["HTTPS_PROXY", "http://proxy.example", "has no effect: to call the network"],
  ["RPC_TIMEOUT_MS", "0", "expected a whole number from 1"],
  ["COLLECT_TIMEOUT_MS", "60", "60 ms is very short: is it in seconds?"],
  ["COLLECT_TIMEOUT_MS", "10000", "less than the 13000 that finality can take"],
  ["MIN_COLLECT_LAMPORTS", "0.001", "expected a whole number from 1"],
  ["MIN_COLLECT_LAMPORTS", "5000", "is below the fee of a collect"],
  ["MAX_PRIORITY_FEE_LAMPORTS", "60000000", "is more than the 50000000 of FEE_BUDGET"],
  ["FEE_BUDGET_LAMPORTS_PER_HOUR", "0.05", "expected a whole number from 0"],
  ["FEE_BUDGET_LAMPORTS_PER_HOUR", "20000000000", "is more than the fee payer holds"],
  ["REDIS_URL", "127.0.0.1:6379", "expected a URL that starts with redis:// or rediss://"],
  ["REDIS_URL", "http://127.0.0.1:6379", "expected a URL that starts with redis:// or rediss://"],
  ["REDIS_URL", "redis://127.0.0.1/a", "[/database number]"],
  ["REDIS_URL", "redis://a.example/1,redis://b.example", "which has only database 0"],
  ["REDIS_URL", "redis://a.example,rediss://b.example", "the same protocol, user and password"],
  ["REDIS_URL", "redis://127.0.0.1:1", "(ECONNREFUSED): nothing listens at this port"],
  ["REDIS_URL", "redis://no-host.invalid", "(ENOTFOUND): there is no host of this name"],
  ["REDIS_URI", "redis://127.0.0.1", "Did you mean REDIS_URL?"],
  ["RPC_TIMEOUT", "5000", "Did you mean RPC_TIMEOUT_MS?"],
];

/** What is wrong only together, or only in production. */
const SETTINGS: readonly [string, Environment, string][] = [
  ["ADMIN_PORT", { PORT: "4444", ADMIN_PORT: "4444" }, "expected another port than PORT's"],
  ["ADMIN_PORT", { HOST: "0.0.0.0", ADMIN_PORT: "" }, "everyone who reaches PORT can read"],
  ["TRUST_PROXY", { TRUST_PROXY: "" }, "not set: if a proxy is in front"],
  ["TRUSTED_CALLERS", { TRUSTED_CALLERS: "10.0.0.0/24" }, "expected no address of TRUST_PROXY"],
  ["HANDLE_ALLOW_UNDERSCORE", { HANDLE_ALLOW_UNDERSCORE: "" }, "handles with an underscore"],
  ["PUBLIC_URL", { CORS_ORIGINS: "https://app.example" }, "missing. With CORS_ORIGINS"],
  ["SANDBOX", { SANDBOX: "true" }, "has no effect: with NODE_ENV=production"],
];
const PRODUCTION = {
  NODE_ENV: "production",
  TRUST_PROXY: "10.0.0.0/8",
  ADMIN_PORT: "0",
  HANDLE_ALLOW_UNDERSCORE: "true",
};

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

  it.each(REFUSALS)("names %s and shows an upstream's own words: %j", async (name, then, text) => {
    const server = name === "SOLANA_RPC_URL" ? sandbox.rpc : sandbox.social;
    onTestFinished(server.faults.add({ then }));
    const { output, blamed } = await examine({});
    expect(output).toMatch(text);
    expect(blamed).toEqual([name]);
  });

  it.each(VALUES)("names %s with the value %j", async (name, value, text) => {
    const { output, blamed } = await examine({ [name]: value });
    expect(output).toContain(text);
    expect(blamed).toEqual([name]);
  });

  it.each(SETTINGS)("names %s in production with %j", async (name, env, text) => {
    const SOLANA_RPC_URL = `${sandbox.rpc.url},${sandbox.secondRpc.url.replace("127.0.0.1", "localhost")}`;
    const { output, blamed } = await examine({ SOLANA_RPC_URL, ...PRODUCTION, ...env });
    expect(output).toContain(text);
    expect(blamed).toEqual([name]);
  });

  it("names swapped URLs", async () => {
    const { output, blamed } = await examine({
      SOCIAL_API_URL: sandbox.env.SOLANA_RPC_URL,
      SOLANA_RPC_URL: sandbox.env.SOCIAL_API_URL,
    });
    expect(output).toMatch(/SOCIAL_API_URL: \S+ is a chain endpoint: swap it with SOLANA_RPC_URL/);
    expect(blamed).toEqual(["SOCIAL_API_URL", "SOLANA_RPC_URL"]);
  });

  it.each(["PORT", "ADMIN_PORT"])("names %s if it is in use", async (name) => {
    const port = await startTls({});
    const { output, blamed } = await examine({ [name]: String(port) });
    expect(output).toContain(`check  ${name}: ${port} is in use: if not by this service, set a`);
    expect(blamed).toEqual([name]);
  });
});
