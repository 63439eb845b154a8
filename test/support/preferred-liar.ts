import { startLyingEndpoint, type LyingEndpoint } from "./doubles/lying-endpoint.ts";
import { startWorld, type World } from "./world.ts";

/** A gateway that prefers an endpoint that lies to an honest one. */
export async function startWithPreferredLiar(
  env: Readonly<Record<string, string>> = {},
): Promise<{ world: World; liar: LyingEndpoint }> {
  let liar: LyingEndpoint | undefined;
  const world = await startWorld(async (sandbox) => {
    liar = await startLyingEndpoint(sandbox);
    return { SOLANA_RPC_URL: `${liar.url},${sandbox.rpc.url}`, ...env };
  });
  return { world, liar: liar! };
}
