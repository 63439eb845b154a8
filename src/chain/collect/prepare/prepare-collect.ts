import type { Lamports } from "../../lamports.ts";
import { distributionsOf, type Sweep } from "../../sweeps.ts";
import type { WalletWithCoins } from "../../wallets.ts";
import type { CoinBackoff } from "../coin-backoff.ts";
import type { Payers } from "../fee-budget.ts";
import { CollectError } from "../../collect-error.ts";
import type { Claim, Claims, OnWait } from "../claims.ts";
import type { Packer } from "./packer.ts";
import type { Prospect, Prospects } from "./prospect.ts";
import type { SignedCollect } from "./plan.ts";

/** A collect that is ready to send, or why it is not. */
type PreparedCollect =
  /** `distributions`: the claims of the sharing configs whose fees it distributes, by the coin's mint. */
  | {
      readonly kind: "signed";
      readonly signed: SignedCollect;
      readonly distributions: ReadonlyMap<string, Claim>;
    }
  /** Another collect distributes fees that this account shares. Find out its outcome, and prepare again. */
  | { readonly kind: "other"; readonly claim: Claim }
  /** Too little would move. */
  | {
      readonly kind: "nothing";
      /** What is missing until the address can receive the fees; undefined if that is not the reason. */
      readonly missing?: Lamports | undefined;
    };

/** Returns a function that reads what an account can collect, and simulates and signs it. Throws as the packer does. */
export function createPrepareCollect(needs: {
  prospects: Prospects;
  packer: Packer;
  backoff: CoinBackoff;
  claims: Claims;
}) {
  const { prospects, packer, backoff, claims } = needs;

  return async ({
    wallet,
    claim,
    payers,
    block,
    leftOut,
    endsAt,
    isAlone,
    onWait,
  }: {
    wallet: WalletWithCoins;
    /** The account's. */
    claim: Claim;
    payers: Payers;
    /** The address block that asks for these coins. */
    block: string | undefined;
    /** The mints of the coins that the collect leaves out are added here. */
    leftOut: Set<string>;
    endsAt: number;
    isAlone: boolean;
    /** Called when another collect must end first that distributes fees which this account shares. */
    onWait: OnWait;
  }): Promise<PreparedCollect> => {
    const { address } = wallet.account;
    const held = new Map<string, Claim>();
    const isHeld = (sweep: Sweep) => sweep.stage !== "SHARED" || held.has(sweep.coin.mint);
    const settleUnless = (isNeeded: (mint: string) => boolean) => {
      for (const [mint, each] of held) {
        if (isNeeded(mint)) continue;
        each.settle();
        held.delete(mint);
      }
    };
    /** The groups of which too little would move. */
    const tried = new Set<symbol>();
    let missing: Lamports | undefined;

    /** Takes the claims of its distributions. Returns the claim of another collect that does one of them. */
    async function claimDistributions({ part }: Prospect): Promise<Claim | undefined> {
      settleUnless(() => false);
      const coins = distributionsOf(part.sweeps).map(({ coin }) => coin);
      // In the same order for all.
      for (const { mint, sharingConfig } of coins.toSorted((a, b) => (a.mint < b.mint ? -1 : 1))) {
        const taken = await claims.take(sharingConfig.address, endsAt, onWait);
        if (taken.openTransaction) return taken;
        held.set(mint, taken);
      }
      return undefined;
    }

    let isSigned = false;
    try {
      for (;;) {
        const coins = wallet.coins.filter(({ mint }) => !leftOut.has(mint));
        const all = await prospects.read(
          { ...wallet, coins },
          {
            leftOutMs: (sweep) => backoff.leftOutMs(address, sweep, block),
            inTurn: (sweeps) => backoff.inTurn(address, sweeps),
          },
        );
        const left = all.filter(({ id }) => !tried.has(id));
        const [prospect] = left;
        if (!prospect) return { kind: "nothing", missing };
        const leftMs = claim.backsOffMs();
        if (leftMs > 0) throw new CollectError({ kind: "backing-off", leftMs });
        if (!prospect.part.sweeps.every(isHeld)) {
          const other = await claimDistributions(prospect);
          if (other) return { kind: "other", claim: other };
          // Read again: another collect may have distributed the fees meanwhile.
          continue;
        }
        const candidate = { prospect, mayDo: isHeld, payers, leftOut, endsAt };
        const signed = await packer.sign(candidate, { isAlone });
        if (signed) {
          isSigned = true;
          if (!prospect.isApart && all.length > 1) backoff.restTried(address);
          settleUnless((mint) => signed.transaction.sweptMints?.includes(mint) ?? false);
          return { kind: "signed", signed, distributions: held };
        }
        // Without the coins that it left out, others may fit into the transaction.
        if (leftOut.size > wallet.coins.length - coins.length) continue;
        tried.add(prospect.id);
        missing ??= prospect.missing;
      }
    } finally {
      if (!isSigned) settleUnless(() => false);
    }
  };
}
