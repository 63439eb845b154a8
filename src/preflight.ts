import { formatSol, toLamports, type Lamports } from "./chain/lamports.ts";
import type { Rpc } from "./chain/rpc/rpc-client.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./observability/log.ts";
import type { SocialClient } from "./social/api-client.ts";
import type { Redis } from "./upstream/redis.ts";

/** The configuration can never work, so the process must not start. */
export class PreflightError extends Error {
  override readonly name = "PreflightError";
}

/** Public clusters by genesis hash. Source: https://docs.anza.xyz/clusters/available */
const CLUSTERS: ReadonlyMap<string | undefined, string> = new Map([
  ["5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d", "mainnet-beta"],
  ["EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG", "devnet"],
  ["4uhcVJyU9pJkvQyS88uRDiswHScSpkwe8Z8zEfGUVQTd", "testnet"],
]);

/** The name of the cluster with this genesis hash. */
export function nameOfCluster(genesisHash: string | undefined): string {
  return CLUSTERS.get(genesisHash) ?? (genesisHash ? "a private cluster" : "an unknown cluster");
}

/**
 * Checks the chain, the fee payer, the social network and Redis without spending anything, and logs the results.
 * Problems are warnings, because they may go away while the process runs.
 *
 * @throws {PreflightError} for problems that never go away: a required program is missing on a public cluster, or
 * Redis cannot be used as configured.
 */
export async function checkUpstreams(needs: {
  config: Config;
  rpc: Rpc;
  client: SocialClient;
  redis: Redis | undefined;
  /** Receives the fee payer's balance, and warns when it is low. */
  setFeePayerBalance: (lamports: Lamports) => void;
  log: Logger;
}): Promise<void> {
  const { config, rpc, client, redis, log } = needs;
  const { chain, secrets } = config;

  async function checkChain(): Promise<void> {
    const feePayer = secrets.feePayer.publicKey.toBase58();
    const programs = [
      ["ESCROW_PROGRAM_ID", chain.escrowProgramId],
      ["LAUNCHPAD_PROGRAM_ID", chain.launchpadProgramId],
      ["LAUNCHPAD_AMM_PROGRAM_ID", chain.launchpadAmmProgramId],
    ] as const;
    const addresses = [...programs.map(([, id]) => id), feePayer];
    const [endpoints, accounts] = await Promise.all([
      rpc.readClusters(),
      rpc.getAccounts(addresses.map((address) => [address])).then(
        (groups) => groups.flat(),
        (error: unknown) => error as Error,
      ),
    ]);
    // The RPC client logs an error for each endpoint that it does not use because it is on another cluster.
    if (endpoints.length > 1) {
      for (const { host, genesisHash: hash } of endpoints) {
        if (hash) log.info({ host }, `SOLANA_RPC_URL: this endpoint is on ${nameOfCluster(hash)}`);
        else
          log.warn(
            { host },
            "SOLANA_RPC_URL: this endpoint does not answer yet; if this lasts, check its URL",
          );
      }
    }
    const genesisHash = endpoints.find((endpoint) => endpoint.genesisHash)?.genesisHash;
    const cluster = CLUSTERS.get(genesisHash);
    const clusterName = nameOfCluster(genesisHash);
    if (accounts instanceof Error) {
      log.warn(
        { err: accounts },
        "SOLANA_RPC_URL: the chain does not answer yet; lookups and collects fail until it does; if this lasts, check the URLs",
      );
      return;
    }
    if (genesisHash) log.info(`SOLANA_RPC_URL: the chain is ${clusterName}`);
    else
      log.warn(
        "SOLANA_RPC_URL: no endpoint reports its cluster yet; if this lasts, use one that supports getGenesisHash",
      );

    const missing = programs.filter((_, i) => accounts[i]?.executable !== true);
    for (const [name, id] of missing) {
      const problem = `${name}: there is no program ${id} on ${clusterName}`;
      // On a public cluster the variable is wrong; on a private one the program may be deployed later.
      if (cluster)
        throw new PreflightError(
          `${problem}. Check the id, and that SOLANA_RPC_URL belongs to the right cluster.`,
        );
      log.warn(`${problem} yet: deploy it, or correct the id`);
    }
    if (missing.length === 0)
      log.info("the escrow program, the launch platform's program and its AMM are deployed");

    const balance = accounts.at(-1)?.lamports ?? toLamports(0);
    log.info(`the fee payer ${feePayer} holds ${formatSol(balance)} SOL`);
    needs.setFeePayerBalance(balance);
  }

  async function checkSocialNetwork(): Promise<void> {
    const isAccepted = await client.isAccepted();
    if (isAccepted) log.info("SOCIAL_API_TOKEN: the social network accepts it");
    // The client warns when the network refuses it.
    else if (isAccepted === undefined)
      log.warn(
        "SOCIAL_API_URL, SOCIAL_API_TOKEN: the social network does not answer as expected yet; lookups of new handles fail until it does; if this lasts, check the URL and the network's status page",
      );
  }

  async function checkRedis(): Promise<void> {
    const problem = await redis?.ready;
    if (problem !== undefined) throw new PreflightError(`REDIS_URL: ${problem}`);
  }

  if (config.isProduction && config.allowUnderscore === undefined) {
    log.warn(
      "HANDLE_ALLOW_UNDERSCORE is not set: handles with an underscore, which many real accounts have, are refused; set it to true to accept them, or to false to silence this warning",
    );
  }
  await Promise.all([checkChain(), checkSocialNetwork(), checkRedis()]);
}
