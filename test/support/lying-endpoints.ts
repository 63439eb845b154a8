import { startLyingEndpoint, type LyingEndpoint } from "./doubles/lying-endpoint.ts";
import { startWorld, type World } from "./world.ts";

/** A gateway with so many endpoints, the preferred one first. Each of them can lie. */
export async function startWithLyingEndpoints(
  count: number,
  env: Readonly<Record<string, string>> = {},
  options?: Parameters<typeof startWorld>[1],
): Promise<{ world: World; endpoints: LyingEndpoint[] }> {
  let endpoints: LyingEndpoint[] = [];
  const world = await startWorld(async (sandbox) => {
    endpoints = await Promise.all(Array.from({ length: count }, () => startLyingEndpoint(sandbox)));
    return { SOLANA_RPC_URL: endpoints.map(({ url }) => url).join(), ...env };
  }, options);
  return { world, endpoints };
}
