import { createHash } from "node:crypto";
import { PublicKey } from "@solana/web3.js";
import { z } from "zod";
import { ALL_BPS } from "../chain/launchpad/sharing-config.ts";
import { respondJson } from "../contract/http-messages.ts";
import type { Chain } from "./chain/chain.ts";
import type { Coins } from "./chain/coins.ts";
import { addToVault } from "./chain/accounts.ts";
import { STRANGER } from "./chain/sharing.ts";
import { createRoute, refuse } from "./route.ts";

/** In lamports: lets a sweep pay the rent of any account that it creates (`isRentAcceptable`). */
const DEFAULT_LAMPORTS = 250_000_000n;
/** The most that a caller may name: 100 SOL. */
const MOST_LAMPORTS = 100_000_000_000n;

/** An account's share of a coin that it shares with a stranger, in basis points. */
const SHARE_BPS = 6_000;

const Body = z.object({
  socialId: z.string(),
  /** The creator's vault, a curve, a pool, or the curve of a coin with shared fees. */
  source: z.enum(["VAULT", "CURVE", "POOL", "SHARED"]),
  lamports: z.coerce.bigint().min(1n).max(MOST_LAMPORTS).default(DEFAULT_LAMPORTS),
});

const EXPECTED =
  'Send JSON such as {"socialId":"1523400000000000123","source":"VAULT"}; `source` is VAULT, CURVE, POOL or SHARED. `lamports` is a whole number from 1 to 100000000000, by default 250000000.';

/**
 * `POST /sandbox/fees`: simulates trading that earns an account of the sandbox these lamports, or
 * 0.25 SOL. Each account has one coin per source, launched before its first trade; of shared
 * fees it gets only its share.
 */
export function createFeesRoute({
  chain,
  coins,
  accounts,
}: {
  chain: Chain;
  coins: Coins;
  accounts: readonly { id: string; address: string; creatorVault: string }[];
}) {
  return createRoute(Body, EXPECTED, ({ socialId, source, lamports }) => {
    const account = accounts.find(({ id }) => id === socialId);
    if (!account) return refuse(400, "The sandbox has no account with this `socialId`.");
    const { address: creator, creatorVault } = account;
    const mint = source === "VAULT" ? null : mintFor(socialId, source);
    if (mint === null) addToVault(chain, creatorVault, lamports);
    else {
      if (!chain.account(coins.addressesOf(mint).curve)) {
        const shareholders = [
          { address: creator, bps: SHARE_BPS },
          { address: STRANGER, bps: ALL_BPS - SHARE_BPS },
        ];
        coins.launch({ mint, creator, ...(source === "SHARED" && { shareholders }) });
        if (source === "POOL") coins.migrate(mint);
      }
      coins.addFees(mint, lamports);
    }
    return respondJson(200, { lamports: String(lamports), mint });
  });
}

/** Derives a coin's mint. The coin of `band` in seed.json has the mint derived for `SHARED`. */
function mintFor(socialId: string, source: string): string {
  return new PublicKey(
    createHash("sha256").update(`${source} coin of ${socialId}`).digest(),
  ).toBase58();
}
