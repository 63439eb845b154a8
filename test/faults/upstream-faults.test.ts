import { afterAll, describe, expect, it } from "vitest";
import type { Env } from "../support/configure.ts";
import { startTlsProxy, type TlsProxy } from "../support/doubles/tls-proxy.ts";
import { FAULTS } from "../support/upstream-faults.ts";
import { BOTH_ENDPOINTS, startWorld, type World } from "../support/world.ts";

const worlds: World[] = [];
const proxies: TlsProxy[] = [];
afterAll(async () => {
  await Promise.all(worlds.map((world) => world.close()));
  for (const proxy of proxies) proxy.close();
});

/** A world whose upstreams have TLS and offer HTTP/2, as those of production. */
async function startWorldWithTls(env: Env = {}) {
  let rpcProxy!: TlsProxy;
  const world = await startWorld(async ({ social, rpc, secondRpc }) => {
    const targets = [social.url, rpc.url, secondRpc.url] as const;
    const started = await Promise.all(targets.map(startTlsProxy));
    proxies.push(...started);
    const [socialUrl, ...rpcUrls] = started.map(({ url }) => url);
    rpcProxy = started[1]!;
    return {
      ...env,
      SOCIAL_API_URL: socialUrl!,
      SOLANA_RPC_URL: env.SOLANA_RPC_URL === BOTH_ENDPOINTS ? rpcUrls.join() : rpcUrls[0]!,
    };
  });
  worlds.push(world);
  return { world, rpcProxy };
}

describe.each(FAULTS)("$title", ({ rows }) => {
  it.concurrent.each(rows)(
    "$fault: $answer, within $time; $chain",
    async ({ run, answer, chain, env }) => {
      const { world, rpcProxy } = await startWorldWithTls(env);
      const { creatorVault, address } = world.account("creator");
      const before = world.sandbox.chain.balance(creatorVault);
      const { status, body, headers } = await run(world, rpcProxy);

      const [expectedStatus, expectedCode] = answer.split(/[ ,;]+/);
      expect([String(status), (body.error as string | undefined) ?? ""]).toEqual([
        expectedStatus,
        status === 200 ? "" : expectedCode,
      ]);
      if (answer.includes("Retry-After"))
        expect(Number(headers.get("retry-after"))).toBeGreaterThan(400);

      await world.gateway.settled();
      const landed = world.sandbox.landedCollectsOf("creator");
      if (chain === "untouched") {
        expect(landed).toEqual([]);
        expect(world.sandbox.chain.balance(creatorVault)).toBe(before);
      } else if (chain === "collected once") {
        expect(landed.map(({ err }) => err)).toEqual([null]);
        expect(world.sandbox.chain.balance(address)).toBe(8_300_000_000n);
      } else {
        expect(landed.map(({ err, feeLamports }) => err !== null && feeLamports > 0n)).toEqual([
          true,
        ]);
      }
    },
  );
});
