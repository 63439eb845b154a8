import { createHash } from "node:crypto";
import { Keypair } from "@solana/web3.js";
import { createAddresses } from "../chain/launchpad/account-addresses.ts";
import { coinAddressesOf } from "../chain/launchpad/coin-addresses.ts";
import { VERSION } from "../observability/version.ts";
import { createChain } from "./chain/chain.ts";
import type { SlotOptions } from "./chain/slots.ts";
import { createCoins, type NewCoin } from "./chain/coins.ts";
import { addToVault, setWrappedSol } from "./chain/accounts.ts";
import { STRANGER } from "./chain/sharing.ts";
import { createLoopbackServer } from "./loopback-server.ts";
import { answerJsonRpc } from "./rpc/json-rpc.ts";
import { createMethods } from "./rpc/methods.ts";
import seed from "./seed.json" with { type: "json" };
import { createSocialNetwork } from "./social-network.ts";
import { createFaultsRoute } from "./faults.ts";
import { createFeesRoute } from "./fees.ts";
import { createPlatformConfigs, programsIn, standInFile } from "./platform.ts";

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/** A seed account with its addresses on the chain. */
export type SandboxAccount = Sandbox["accounts"][number];

/** A coin of seed.json. Amounts there are in the smallest unit. */
interface SeedCoin extends Omit<NewCoin, "creator" | "fees"> {
  readonly curveFees?: string;
  /** Only of a coin that has migrated. */
  readonly poolFees?: string;
}

/**
 * Addresses are derived from this id. The program deployed there is a placeholder: see
 * `startSandbox`.
 */
const ESCROW_PROGRAM_ID = "EscrowSandbox1111111111111111111111111111111";
const ESCROW_SEED = "social";

const FEE_PAYER_LAMPORTS = 10_000_000_000n;
const STRANGER_LAMPORTS = 1_000_000_000n;

/**
 * Fixed, like the fee payer's key, so that a service stays configured when the sandbox restarts.
 */
const SOCIAL_API_TOKEN = "token-of-the-sandbox";
const FEE_PAYER_SEED = createHash("sha256").update("the sandbox's fee payer").digest();

/** Outside `startSandbox`, so that all sandboxes of a process share one cache of addresses. */
const addressesOf = createAddresses({
  escrowProgramId: ESCROW_PROGRAM_ID,
  escrowSeed: ESCROW_SEED,
});

/**
 * A chain and a social network in this process, with accounts on both and no real money. Starts
 * them on `host`, by default at free ports; slots last `slotMs`; with 0 they advance only through
 * `chain.advanceSlots`. `platformPrograms` is a folder with the launch platform's own programs,
 * which replace the stand-ins.
 */
export async function startSandbox({
  host,
  slotMs = 200,
  rpcPort = 0,
  socialPort = 0,
  platformPrograms,
  ...slots
}: SlotOptions & {
  host?: string | undefined;
  slotMs?: number;
  rpcPort?: number;
  socialPort?: number;
  platformPrograms?: string | undefined;
} = {}) {
  const chain = createChain({
    ...slots,
    slotMs,
    programs: [
      ...programsIn(platformPrograms),
      // The gateway only checks that it exists, and nothing calls it, so any program will do.
      { id: ESCROW_PROGRAM_ID, file: standInFile("launchpad.so") },
    ],
  });
  createPlatformConfigs(chain);
  const feePayer = Keypair.fromSeed(FEE_PAYER_SEED);
  chain.setBalance(feePayer.publicKey.toBase58(), FEE_PAYER_LAMPORTS);
  chain.setBalance(STRANGER, STRANGER_LAMPORTS);

  const coins = createCoins(chain);
  const accounts = seed.map((account) => {
    const { vault, ammVault: inAmm, balance, coins: seedCoins = [], ...profile } = account;
    const addresses = addressesOf(profile.id);
    const { address, creatorVault, vaultTokens, ammVaultAuthority, ammVault } = addresses;
    if (vault !== "0") addToVault(chain, creatorVault, BigInt(vault));
    if (inAmm) setWrappedSol(chain, ammVaultAuthority, BigInt(inAmm));
    chain.setBalance(address, BigInt(balance));
    return {
      ...profile,
      address,
      creatorVault,
      vaultTokens,
      ammVaultAuthority,
      ammVault,
      coins: (seedCoins as SeedCoin[]).map(({ curveFees = "0", poolFees, ...coin }) => {
        coins.launch({ ...coin, creator: address, fees: BigInt(curveFees) });
        if (poolFees) coins.migrate(coin.mint, BigInt(poolFees));
        return coinAddressesOf(coin.mint);
      }),
    };
  });

  const methods = createMethods(chain);
  const [rpc, social] = await Promise.all([
    createLoopbackServer({
      host,
      port: rpcPort,
      handle: ({ body }) => answerJsonRpc(body, methods),
    }),
    createSocialNetwork({ accounts, token: SOCIAL_API_TOKEN, host, port: socialPort }),
  ]);

  const example = accounts[0]!;
  const programs =
    platformPrograms === undefined
      ? "stand-ins for its programs; PLATFORM_PROGRAMS=<folder> runs its own"
      : `its own programs, from ${platformPrograms}`;
  const env = {
    SOCIAL_API_URL: social.url,
    SOCIAL_API_TOKEN,
    SOLANA_RPC_URL: rpc.url,
    FEE_PAYER_KEYPAIR: JSON.stringify([...feePayer.secretKey]),
    ESCROW_PROGRAM_ID,
    ESCROW_SEED,
  };
  return {
    /** Which programs the chain runs for the launch platform's. */
    programs,
    /**
     * The environment variables for a gateway on this sandbox; SOCIAL_API_TOKEN and
     * FEE_PAYER_KEYPAIR are secrets.
     */
    env,
    chain,
    rpc,
    social,
    coins,
    /** What the sandbox adds to the API. */
    routes: {
      "/sandbox/fees": createFeesRoute({ chain, coins, accounts }),
      "/sandbox/faults": createFaultsRoute({ chain: rpc, network: social }),
    },
    /** The accounts of seed.json with their coins, in the file's order. */
    accounts,
    /** What to print once a gateway listens at `gatewayUrl`: addresses, and commands to paste. */
    describe: (gatewayUrl: string) => `
Tributary ${VERSION} is running on a sandbox: its own chain and social network, in memory. No real money is involved.

  Gateway                 ${gatewayUrl}
  Home page               ${gatewayUrl}/
  REST                    ${gatewayUrl}/docs
  GraphiQL                ${gatewayUrl}/graphql
  Sandbox chain (RPC)     ${rpc.url}
  Sandbox social network  ${social.url}
  Launch platform         ${programs}

Look up ${example.handle}, collect, and add new fees to the vault:

  curl '${gatewayUrl}/wallet/lookup?handle=${example.handle}'
  curl -X POST ${gatewayUrl}/collect -d '{"socialId":"${example.id}"}'
  curl ${gatewayUrl}/sandbox/fees -d '{"socialId":"${example.id}","source":"VAULT"}'
`,
    async close() {
      chain.close();
      await Promise.all([rpc.close(), social.close()]);
    },
  };
}
