import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { getBase58Decoder } from "@solana/codecs-strings";
import { Keypair } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { readConfig, wantsSandbox } from "../src/config.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

const keypair = Keypair.generate();
const keypairJson = JSON.stringify([...keypair.secretKey]);
const complete = {
  SOCIAL_API_URL: "https://network.example",
  SOCIAL_API_TOKEN: "token-that-is-secret",
  SOLANA_RPC_URL: "https://user:pass@rpc.example/key-that-is-secret, http://127.0.0.1:8899",
  FEE_PAYER_KEYPAIR: keypairJson,
  ESCROW_PROGRAM_ID: "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
};

/** The error message for invalid variables. */
function messageFor(env: Record<string, string | undefined>): string {
  try {
    readConfig(env);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("expected readConfig to find a problem");
}

describe("the variables", () => {
  it("have the documented defaults", () => {
    const { secrets, ...config } = readConfig(complete);
    expect(config).toEqual({
      port: 4000,
      host: "127.0.0.1",
      adminPort: undefined,
      basePath: "",
      publicUrl: undefined,
      socialApiUrl: new URL("https://network.example"),
      escrowProgramId: complete.ESCROW_PROGRAM_ID,
      escrowSeed: "social",
      trustProxy: [],
      trustedCallers: [],
      corsOrigins: undefined,
      rateLimitMax: 20,
      maxCost: 20,
      handleAllowUnderscore: undefined,
      socialQueueMax: 1000,
      socialTimeoutMs: 5000,
      socialCacheSeconds: 300,
      socialReadsPerHour: 10_000,
      rpcCallsPerSecond: 55,
      rpcTimeoutMs: 5000,
      collectTimeoutMs: 50_000,
      minCollectLamports: 100_000n,
      maxPriorityFeeLamports: 50_000n,
      feeBudgetLamportsPerHour: 50_000_000n,
      streamsMax: 1_000,
      logLevel: "info",
      nodeEnv: undefined,
    });
    expect(secrets.solanaRpcUrl.map(({ host }) => host)).toEqual(["rpc.example", "127.0.0.1:8899"]);
  });

  it("accept the fee payer's key as a file path, as JSON and as base58", () => {
    const file = join(temporaryFolder(), "id.json");
    writeFileSync(file, `${keypairJson}\n`);
    for (const FEE_PAYER_KEYPAIR of [
      file,
      keypairJson,
      getBase58Decoder().decode(keypair.secretKey),
    ]) {
      const { secrets } = readConfig({ ...complete, FEE_PAYER_KEYPAIR });
      expect(secrets.feePayerKeypair.publicKey.toBase58()).toBe(keypair.publicKey.toBase58());
    }
  });

  it("accept one Redis, or the nodes of a cluster", () => {
    const hosts = (REDIS_URL: string) =>
      readConfig({ ...complete, REDIS_URL }).secrets.redisUrl?.map(
        ({ host, pathname }) => host + pathname,
      );
    expect(hosts("rediss://user:pass@a:1/2")).toEqual(["a:1/2"]);
    expect(hosts("redis://:pass@a:1, redis://:pass@[::1]:2/")).toEqual(["a:1", "[::1]:2/"]);
  });

  it("count as absent when they are empty", () => {
    expect(readConfig({ ...complete, PORT: "", BASE_PATH: "", REDIS_URL: "" }).port).toBe(4000);
  });
});

describe("an invalid variable", () => {
  it.each([
    ["PORT", "65536", "expected a whole number from 0 to 65535"],
    ["ADMIN_PORT", "admin", "expected a whole number from 0 to 65535"],
    ["BASE_PATH", "api/", "expected a path such as /api"],
    ["PUBLIC_URL", "tributary.example", "expected a URL that starts with http:// or https://"],
    [
      "PUBLIC_URL",
      "https://tributary.example/?a",
      "expected a URL without user, password, query and fragment",
    ],
    ["RATE_LIMIT_MAX", "0", "expected a whole number from 1"],
    ["NODE_ENV", "prod", "expected development, test or production"],
    ["SANDBOX", "yes", "expected true or false"],
    ["HANDLE_ALLOW_UNDERSCORE", "yes", "expected true or false"],
    ["TRUSTED_CALLERS", "app.example", "expected addresses or CIDR ranges, but no /0"],
    ["TRUSTED_CALLERS", "192.0.2.1,0.0.0.0/0", "expected addresses or CIDR ranges, but no /0"],
    ["TRUSTED_CALLERS", "::/0", "expected addresses or CIDR ranges, but no /0"],
    ["TRUSTED_CALLERS", "::ffff:10.0.0.0/104", "expected addresses or CIDR ranges, but no /0"],
    ["CORS_ORIGINS", "app.example", "expected * or origins such as https://app.example"],
    ["CORS_ORIGINS", "https://app.example/page", "expected * or origins"],
    ["CORS_ORIGINS", "https://*.example", "expected * or origins"],
    [
      "CORS_ORIGINS",
      "https://app.example,*",
      "separated by commas (the value is not shown here): entry 2 of 2",
    ],
    ["TRUST_PROXY", "1", "expected addresses or CIDR ranges"],
    ["TRUST_PROXY", "10.0.0.0/99", "expected addresses or CIDR ranges"],
    ["TRUST_PROXY", "10.0.0.0/255.0.0.0", "expected addresses or CIDR ranges"],
    ["TRUST_PROXY", "loopback", "expected addresses or CIDR ranges"],
    ["TRUST_PROXY", "fe80::1%eth0", "expected addresses or CIDR ranges"],
    ["SOCIAL_API_URL", "network.example", "expected a URL that starts with http"],
    ["SOCIAL_API_URL", "https://user:pass@network.example", "expected a URL without user"],
    ["SOCIAL_API_TOKEN", "two words", "expected printable ASCII"],
    ["SOLANA_RPC_URL", "wss://rpc.example", "expected a URL that starts with http"],
    [
      "SOLANA_RPC_URL",
      "https://rpc.example,",
      "(the value is not shown here): entry 2 of 2 is empty",
    ],
    ["SOLANA_RPC_URL", "https://a.example https://b.example", "entry 1 of 1 contains a space"],
    ["SOCIAL_API_URL", "https://network.example/2", "expected the base URL without /2"],
    ["ESCROW_PROGRAM_ID", "not-base58", '32 bytes in base58, got "not-base58"'],
    // It may be a secret key.
    ["ESCROW_PROGRAM_ID", "5".repeat(88), "32 bytes in base58, got 88 characters"],
    [
      "ESCROW_PROGRAM_ID",
      "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
      "whose addresses nobody can withdraw",
    ],
    ["ESCROW_SEED", "a-seed-that-is-longer-than-32-bytes", "at most 32 bytes"],
    ["SOCIAL_TIMEOUT_MS", "0", "expected a whole number from 1 to 600000"],
    ["COLLECT_TIMEOUT_MS", "1.5", "expected a whole number"],
    ["SOCIAL_CACHE_SECONDS", "-5", "expected a whole number"],
    ["SOCIAL_READS_PER_HOUR", "unlimited", "expected a whole number from 0"],
    ["MIN_COLLECT_LAMPORTS", "0", "expected a whole number from 1"],
    ["LOG_LEVEL", "loud", "expected one of trace"],
    ["REDIS_URL", "localhost:6379", "expected a URL that starts with redis:// or rediss://"],
    ["REDIS_URL", "redis://127.0.0.1/first", "expected redis://[user:password@]host"],
    ["REDIS_URL", "redis://a,", "expected a URL that starts with redis:// or rediss://"],
    ["REDIS_URL", "redis://a/1,redis://b/1", "and no database number, in all URLs"],
    [
      "REDIS_URL",
      "redis://a,rediss://b",
      "expected the same protocol, user and password, and no database number",
    ],
    [
      "REDIS_URL",
      "redis://u:p@a,redis://u:q@b",
      "expected the same protocol, user and password, and no database number",
    ],
    ["FEE_PAYER_KEYPAIR", "/nowhere/id.json", "cannot be read as a file /nowhere/id.json (ENOENT)"],
    [
      "FEE_PAYER_KEYPAIR",
      "~/id.json",
      "~/id.json (ENOENT); ~ is not expanded, so write the whole path",
    ],
    ["FEE_PAYER_KEYPAIR", "/", "cannot be read as a file (EISDIR)"],
    [
      "FEE_PAYER_KEYPAIR",
      "[1,2,3]",
      "64 bytes, or the secret key in base58; the value is not a key",
    ],
  ])("is named with the expected value: %s=%s", (name, value, expected) => {
    const message = messageFor({ ...complete, [name]: value });
    expect(message).toContain(`- ${name}: `);
    expect(message).toContain(expected);
  });

  it.each([
    ["10.0.0.0/8", "10.1.2.3"],
    ["10.1.2.3", "10.9.9.9/8"],
    ["::ffff:127.0.0.1", "127.0.0.0/8"],
    ["fc00::/6", "192.0.2.1, fc00::/7"],
  ])(
    "can be a trusted caller that may be a proxy: %s with TRUST_PROXY=%s",
    (TRUSTED_CALLERS, TRUST_PROXY) => {
      expect(messageFor({ ...complete, TRUSTED_CALLERS, TRUST_PROXY })).toContain(
        `- TRUSTED_CALLERS: expected no address of TRUST_PROXY, which all callers may seem to have, got "${TRUSTED_CALLERS}"`,
      );
      expect(
        readConfig({ ...complete, TRUSTED_CALLERS, TRUST_PROXY: "198.51.100.1" }).trustedCallers,
      ).toEqual([TRUSTED_CALLERS]);
    },
  );

  it("can be a key whose halves do not match", () => {
    const mixed = [...keypair.secretKey.slice(0, 32), ...Keypair.generate().publicKey.toBytes()];
    expect(messageFor({ ...complete, FEE_PAYER_KEYPAIR: JSON.stringify(mixed) })).toContain(
      "does not match",
    );
  });

  it("can be a proxy's, which is not quoted", () => {
    const proxy = { NODE_USE_ENV_PROXY: "1", HTTPS_PROXY: "me:a-secret@proxy" };
    const message = messageFor({ ...complete, ...proxy });
    expect(message).toContain("- HTTPS_PROXY: expected a URL that starts with http://");
    expect(message).not.toContain("a-secret");
  });

  it("can be a missing PUBLIC_URL, without which production cannot tell its own pages", () => {
    const production = { ...complete, NODE_ENV: "production", CORS_ORIGINS: "https://app.example" };
    expect(messageFor(production)).toContain(
      "- PUBLIC_URL: missing. With CORS_ORIGINS, production",
    );
    for (const change of [
      { PUBLIC_URL: "https://tributary.example" },
      { CORS_ORIGINS: "*" },
      { NODE_ENV: "development" },
    ])
      expect(readConfig({ ...production, ...change }).port).toBe(4000);
  });

  it("is named in one message with all others", () => {
    const message = messageFor({ SOCIAL_API_URL: "x", PORT: "x" });
    for (const name of [
      "SOCIAL_API_URL",
      "SOCIAL_API_TOKEN",
      "SOLANA_RPC_URL",
      "FEE_PAYER_KEYPAIR",
      "ESCROW_PROGRAM_ID",
      "PORT",
    ]) {
      expect(message).toContain(`- ${name}: `);
    }
  });

  it.each(["SOCIAL_API_URL", "PUBLIC_URL", "CORS_ORIGINS", "SOLANA_RPC_URL", "REDIS_URL"])(
    "is reported without the user and the password of a URL in %s",
    (name) => {
      const access = "us3r:Secr3t";
      for (const url of [
        `https://${access}@app.example/page?query#hash`,
        `https://a.example,https://${access}@app.example/page?query`,
        `https//${access}@app.example`,
        `ftp://${access}@app.example`,
        `${access}@app.example`,
        `https://${access}@app.example:port`,
        `https://${access}%@app.example`,
        `redis://${access}@a/1,redis://${access}2@b`,
      ]) {
        // Some of the URLs are valid, so another variable is not.
        const message = messageFor({ ...complete, PORT: "x", [name]: url });
        expect(message).not.toMatch(/us3r|Secr3t/);
      }
    },
  );

  it("is reported without secrets", () => {
    const secret = "Secr3tSecr3t";
    const message = messageFor({
      SOCIAL_API_URL: `https://user:${secret}@network.example`,
      SOCIAL_API_TOKEN: `${secret} with a space`,
      SOLANA_RPC_URL: `${secret}://rpc.example/${secret}`,
      FEE_PAYER_KEYPAIR: `[1,2,"${secret}"]`,
      REDIS_URL: `redis://:${secret}@127.0.0.1/x`,
      ESCROW_PROGRAM_ID: complete.ESCROW_PROGRAM_ID,
    });
    expect(message).not.toContain(secret);
    const twoPasswords = `redis://:${secret}@a,redis://:${secret}2@b`;
    expect(messageFor({ ...complete, REDIS_URL: twoPasswords })).not.toContain(secret);
    expect(messageFor({ ...complete, FEE_PAYER_KEYPAIR: secret })).not.toContain(secret);
  });
});

describe("the sandbox", () => {
  it("admits 200 requests a minute by default, but no request that counts as more than production's 20", () => {
    const limitsOf = (env: Record<string, string>, sandbox?: Record<string, string>) => {
      const { rateLimitMax, maxCost } = readConfig(env, sandbox);
      return [rateLimitMax, maxCost];
    };
    expect(limitsOf({}, complete)).toEqual([200, 20]);
    expect(limitsOf({ RATE_LIMIT_MAX: "1000" }, complete)).toEqual([1_000, 1_000]);
    expect(limitsOf({ ...complete, RATE_LIMIT_MAX: "7" })).toEqual([7, 7]);
    expect(limitsOf(complete)).toEqual([20, 20]);
  });

  it("is the default without upstreams, except in production", () => {
    expect(wantsSandbox({})).toBe(true);
    expect(wantsSandbox({ PORT: "1", SOCIAL_API_TOKEN: "x", SOLANA_RPC_URL: "" })).toBe(true);
    expect(wantsSandbox({ NODE_ENV: "production" })).toBe(false);
    for (const name of [
      "SOCIAL_API_URL",
      "SOLANA_RPC_URL",
      "FEE_PAYER_KEYPAIR",
      "ESCROW_PROGRAM_ID",
    ]) {
      expect(wantsSandbox({ [name]: "x" })).toBe(false);
    }
  });
});
