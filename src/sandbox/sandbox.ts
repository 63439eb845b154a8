import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { Keypair } from "@solana/web3.js";
import { createAddresses } from "../chain/launchpad/account-addresses.ts";
import type { AccountAddresses } from "../chain/launchpad/account-addresses.ts";
import { coinAddressesOf, type CoinAddresses } from "../chain/launchpad/coin-addresses.ts";
import {
  LAUNCHPAD_AMM_PROGRAM_ID,
  LAUNCHPAD_FEES_PROGRAM_ID,
  LAUNCHPAD_PROGRAM_ID,
} from "../chain/launchpad/program-ids.ts";
import { describeSandbox } from "./banner.ts";
import { createChain } from "./chain/chain.ts";
import type { SlotOptions } from "./chain/slots.ts";
import { createCoins, createUsdc, MINT_DECIMALS, USDC_MINT } from "./chain/coins.ts";
import type { Coins, NewCoin } from "./chain/coins.ts";
import { setAmmVault } from "./chain/creator-fees.ts";
import { STRANGER } from "./chain/sharing.ts";
import { createChainRpc } from "./rpc/rpc-server.ts";
import seed from "./seed.json" with { type: "json" };
import { createSocialNetwork } from "./social-network.ts";
import type { NetworkAccount } from "./social-network.ts";
import { createFaultsHandler } from "./faults-handler.ts";
import { createFeesHandler } from "./fees-handler.ts";
import { createPlatformConfigs, programsIn } from "./platform.ts";
import { createTrading } from "./trading.ts";

/** A seed account with its addresses on the chain. */
export interface SandboxAccount extends NetworkAccount, AccountAddresses {
  readonly coins: readonly CoinAddresses[];
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

const programFile = (name: string) => fileURLToPath(new URL(`programs/${name}`, import.meta.url));

/** For the launch platform's programs. */
const STAND_INS = [
  { id: LAUNCHPAD_PROGRAM_ID, file: programFile("launchpad.so") },
  { id: LAUNCHPAD_AMM_PROGRAM_ID, file: programFile("amm.so") },
  // The gateway only checks that it exists, and reads accounts that it owns: any program will do.
  { id: LAUNCHPAD_FEES_PROGRAM_ID, file: programFile("launchpad.so") },
];

/**
 * Addresses are derived from this id. The program deployed there is a placeholder: see
 * `startSandbox`.
 */
const ESCROW_PROGRAM_ID = "EscrowSandbox1111111111111111111111111111111";
const ESCROW_SEED = "social";

const FEE_PAYER_SOL = "10";
const STRANGER_SOL = "1";

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
 * them on `host`; slots last `slotMs`; with 0 they advance only through
 * `chain.advanceSlots`. If a port is 0 or in use, picks a free one. `platformPrograms` is a folder
 * with the launch platform's own programs, which replace the stand-ins; `launchpadFile` replaces
 * its main program.
 */
export async function startSandbox({
  host = "127.0.0.1",
  slotMs = 200,
  consensus = "alpenglow",
  rpcPort = 8899,
  socialPort = 8898,
  platformPrograms,
  launchpadFile,
  ...slots
}: Partial<SlotOptions> & {
  host?: string;
  slotMs?: number;
  rpcPort?: number;
  socialPort?: number;
  platformPrograms?: string | undefined;
  launchpadFile?: string | undefined;
} = {}) {
  const chain = createChain({
    ...slots,
    slotMs,
    consensus,
    programs: [
      ...(platformPrograms === undefined ? STAND_INS : programsIn(platformPrograms)),
      ...(launchpadFile === undefined ? [] : [{ id: LAUNCHPAD_PROGRAM_ID, file: launchpadFile }]),
      // The gateway only checks that it exists, and nothing calls it, so any program will do.
      { id: ESCROW_PROGRAM_ID, file: programFile("launchpad.so") },
    ],
  });
  createPlatformConfigs(chain);
  createUsdc(chain);
  const feePayer = Keypair.fromSeed(FEE_PAYER_SEED);
  chain.setBalance(feePayer.publicKey.toBase58(), parseSol(FEE_PAYER_SOL));
  chain.setBalance(STRANGER, parseSol(STRANGER_SOL));

  const coins = createCoins(chain);
  const accounts = seed.map((account): SandboxAccount => {
    const { handle, id, name, suspended, verified, followers, picture } = account;
    const { vaultSol, ammVaultSol, addressSol, coins: seedCoins = [] } = account;
    const addresses = addressesOf(id);
    const { address, creatorVault, vaultTokens, ammVaultAuthority, ammVault } = addresses;
    const collectable = parseSol(vaultSol);
    if (collectable > 0n) chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + collectable);
    if (ammVaultSol) setAmmVault(chain, addresses, parseSol(ammVaultSol));
    chain.setBalance(address, parseSol(addressSol));
    return {
      ...{ handle, id, name, suspended, verified, followers, picture },
      ...{ address, creatorVault, vaultTokens, ammVaultAuthority, ammVault },
      coins: seedCoins.map((coin) => launchSeedCoin(coins, coin, address)),
    };
  });

  const [rpc, social] = await Promise.all([
    createChainRpc({ chain, host, port: rpcPort }),
    createSocialNetwork({ accounts, token: SOCIAL_API_TOKEN, host, port: socialPort }),
  ]);

  const ports = [
    ["chain", rpcPort, rpc.url],
    ["social network", socialPort, social.url],
  ] as const;
  const programs =
    platformPrograms === undefined
      ? "stand-ins for its programs; PLATFORM_PROGRAMS=<folder> runs its own"
      : `its own programs, from ${platformPrograms}`;
  return {
    /** Which programs the chain runs for the launch platform's. */
    programs,
    /** A warning for each port that was in use. */
    warnings: ports
      .filter(([, port, url]) => port !== 0 && new URL(url).port !== String(port))
      .map(
        ([name, port, url]) => `port ${port} is in use, so the sandbox's ${name} listens at ${url}`,
      ),
    /**
     * The environment variables for a gateway on this sandbox; SOCIAL_API_TOKEN and
     * FEE_PAYER_KEYPAIR are secrets.
     */
    env: {
      SOCIAL_API_URL: social.url,
      SOCIAL_API_TOKEN,
      SOLANA_RPC_URL: rpc.url,
      FEE_PAYER_KEYPAIR: JSON.stringify([...feePayer.secretKey]),
      ESCROW_PROGRAM_ID,
      ESCROW_SEED,
    },
    chain,
    rpc,
    social,
    coins,
    /** What the sandbox adds to the API. */
    routes: {
      "/sandbox/fees": {
        operation: "other" as const,
        POST: createFeesHandler(createTrading({ chain, coins, accounts })),
      },
      "/sandbox/faults": {
        operation: "other" as const,
        POST: createFaultsHandler({ chain: rpc.faults, network: social.faults }),
      },
    },
    /** The accounts of seed.json with their coins, in the file's order. */
    accounts,
    /** The banner to print once a gateway listens at `gatewayUrl`. */
    describe: (gatewayUrl: string) =>
      describeSandbox({
        gatewayUrl,
        rpcUrl: rpc.url,
        socialUrl: social.url,
        programs,
        example: accounts[0]!,
      }),
    async close() {
      chain.close();
      await Promise.all([rpc.close(), social.close()]);
    },
  };
}

/**
 * A coin of seed.json. Its fees are decimal amounts in its currency. A coin without `poolFees` has
 * not migrated.
 */
interface SeedCoin {
  readonly mint: string;
  readonly kind?: string;
  /** For the kind `shared`: accounts of seed.json, or {@link STRANGER} if there is no handle. */
  readonly shareholders?: readonly { readonly handle?: string; readonly bps: number }[];
  readonly currency?: string;
  readonly curveFees?: string;
  readonly poolFees?: string;
}

function launchSeedCoin(coins: Coins, seedCoin: SeedCoin, creator: string): CoinAddresses {
  const { mint, currency, curveFees = "0", poolFees } = seedCoin;
  const kind = seedCoin.kind as NewCoin["kind"];
  const shareholders = seedCoin.shareholders?.map(({ handle, bps }) => {
    const shareholder = seed.find((account) => account.handle === handle);
    return { address: shareholder ? addressesOf(shareholder.id).address : STRANGER, bps };
  });
  if (currency === "USDC") {
    coins.launch({
      mint,
      creator,
      kind,
      quoteMint: USDC_MINT,
      fees: parseDecimal(curveFees, MINT_DECIMALS),
    });
  } else {
    coins.launch({ mint, creator, kind, shareholders, fees: parseSol(curveFees) });
  }
  if (poolFees) coins.migrate(mint, { fees: parseSol(poolFees) });
  return coinAddressesOf(mint);
}

/** Converts decimal SOL with up to 9 fraction digits to lamports. */
function parseSol(sol: string): bigint {
  return parseDecimal(sol, 9);
}

/** Converts a decimal amount with up to `decimals` fraction digits to the smallest unit. */
function parseDecimal(amount: string, decimals: number): bigint {
  const [whole = "", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.padEnd(decimals, "0"));
}
