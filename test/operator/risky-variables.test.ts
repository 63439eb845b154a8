import { describe, expect, it } from "vitest";
import { warnAboutRisks } from "../../src/commands/risky-variables.ts";

const SAFE = {
  NODE_ENV: "production",
  SOLANA_RPC_URL: "https://a.example/key,https://b.example/key",
  HANDLE_ALLOW_UNDERSCORE: "false",
  HOST: "0.0.0.0",
  ADMIN_PORT: "4001",
  TRUST_PROXY: "10.0.0.0/8",
};

describe("variables that are valid but probably mistakes", () => {
  it("are none in a configuration for production", () => {
    expect(warnAboutRisks(SAFE)).toEqual([]);
    expect(warnAboutRisks({})).toEqual([]);
  });

  it.each([
    [{ SOLANA_RPC_URL: "https://a.example/key" }, "SOLANA_RPC_URL: has one provider"],
    [
      { SOLANA_RPC_URL: "https://a.example/key, https://a.example/other" },
      "SOLANA_RPC_URL: has one provider",
    ],
    [{ HTTPS_PROXY: "http://proxy.example" }, "HTTPS_PROXY has no effect: to call the network"],
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
