import { describe, expect, it } from "vitest";
import { warnAboutRisks } from "../../src/commands/risky-variables.ts";

const SAFE = {
  NODE_ENV: "production",
  SOLANA_RPC_URL: "https://a.example/key,https://b.example/key",
  HANDLE_ALLOW_UNDERSCORE: "false",
  HOST: "0.0.0.0",
  ADMIN_PORT: "4001",
  TRUST_PROXY: "10.0.0.0/8",
  RPC_TIMEOUT_MS: "5000",
  CORS_ORIGINS: "*",
};

describe("variables that are valid but probably mistakes", () => {
  it("are none in a configuration for production", () => {
    expect(warnAboutRisks(SAFE)).toEqual([]);
    expect(warnAboutRisks({})).toEqual([]);
    expect(warnAboutRisks({ FEE_BUDGET_LAMPORTS_PER_HOUR: "0" })).toEqual([]);
  });

  it.each([
    [{ SOLANA_RPC_URL: "https://a.example/key" }, "SOLANA_RPC_URL: has one provider"],
    [
      { SOLANA_RPC_URL: "https://a.example/key, https://a.example/other" },
      "SOLANA_RPC_URL: has one provider",
    ],
    [{ COLLECT_TIMEOUT_MS: "60" }, "COLLECT_TIMEOUT_MS: 60 ms is less than the 13000 that"],
    [{ RPC_TIMEOUT_MS: "5" }, "RPC_TIMEOUT_MS: 5 ms is very short"],
    [{ SOCIAL_TIMEOUT_MS: "5" }, "SOCIAL_TIMEOUT_MS: 5 ms is very short"],
    [{ MIN_COLLECT_LAMPORTS: "5000" }, "MIN_COLLECT_LAMPORTS: 5000 is below the fee of a collect"],
    [{ CORS_ORIGINS: "https://*.example" }, "CORS_ORIGINS: an origin with * matches no page"],
    [{ COLLECT_TIMEOUT_MS: "12999" }, "COLLECT_TIMEOUT_MS: 12999 ms is less than the 13000"],
    [
      { MAX_PRIORITY_FEE_LAMPORTS: "60000000" },
      "MAX_PRIORITY_FEE_LAMPORTS: 60000000 is more than the 50000000 of FEE_BUDGET",
    ],
    [
      { FEE_BUDGET_LAMPORTS_PER_HOUR: "49999" },
      "MAX_PRIORITY_FEE_LAMPORTS: 50000 is more than the 49999 of FEE_BUDGET",
    ],
    [{ HTTPS_PROXY: "http://proxy.example" }, "HTTPS_PROXY has no effect: to call the network"],
    [{ RPC_CALLS_PER_SECOND: "7" }, "RPC_CALLS_PER_SECOND: with less than 8 for each replica"],
    [{ SOCIAL_READS_PER_HOUR: "0" }, "SOCIAL_READS_PER_HOUR: 0 means unlimited"],
    [{ ESCROW_SEED: "'social'" }, "ESCROW_SEED: the quotes around it are a part of the seed"],
    [{ HOST: "127.0.0.1", TRUST_PROXY: undefined }, "TRUST_PROXY: not set: if a proxy is in"],
    [
      { ADMIN_PORT: undefined },
      "ADMIN_PORT: not set, so everyone who reaches PORT can read /metrics",
    ],
    [{ HOST: "::", TRUST_PROXY: undefined }, "TRUST_PROXY: not set: if a proxy is in front"],
    [
      { HANDLE_ALLOW_UNDERSCORE: undefined },
      "HANDLE_ALLOW_UNDERSCORE: not set, so handles with an underscore",
    ],
  ])("are one warning, without secrets: %j", (changes, warning) => {
    const warnings = warnAboutRisks({ ...SAFE, ...changes });
    expect(warnings).toEqual([expect.stringContaining(warning)]);
    expect(warnings.join()).not.toContain("key");
  });
});
