import type { Lamports } from "../../lamports.ts";
import { distributionsOf } from "../../sweeps.ts";
import { CollectError } from "../../collect-error.ts";
import type { Claim, Claims, OnWait } from "../claims.ts";
import type { CoinBackoff } from "../coin-backoff.ts";
import type { Draft, PendingCollect, ReadDrafts } from "./draft.ts";
import type { Planner, SignedCollect } from "./planner.ts";

/** A collect that is ready to send, or why it is not. */
type PreparedCollect =
  /** `distributions`: the claims of the sharing configs whose fees it distributes, by the coin's mint. */
  | {
      readonly kind: "signed";
      readonly signed: SignedCollect;
      readonly distributions: ReadonlyMap<string, Claim>;
    }
  /** Another replica has taken a claim meanwhile. Take it again. */
  | { readonly kind: "lost" }
  /** Another collect distributes fees that this account shares. Find out its outcome, and prepare again. */
  | { readonly kind: "other"; readonly claim: Claim }
  /** Too little would move. */
  | {
      readonly kind: "nothing";
      /** What is missing until the address can receive the fees; undefined if that is not the reason. */
      readonly missing?: Lamports | undefined;
    };

/**
 * Returns a function that reads what an account can collect, and simulates, signs and stores it. `onWait`: see
 * {@link OnWait}, for another collect that distributes fees which this account shares. Throws as the planner does.
 */
export function createPrepareCollect(needs: {
  readDrafts: ReadDrafts;
  plan: Planner;
  backoff: CoinBackoff;
  claims: Claims;
}) {
  const { readDrafts, plan, backoff, claims } = needs;

  return async (
    collect: Omit<PendingCollect, "distributions">,
    { isAlone, onWait }: { isAlone: boolean; onWait: OnWait },
  ): Promise<PreparedCollect> => {
    const { wallet, claim, leftOut, endsAt } = collect;
    const held = new Map<string, Claim>();
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
    async function claimDistributions({ wanted }: Draft): Promise<Claim | undefined> {
      settleUnless(() => false);
      const coins = distributionsOf(wanted.sweeps).map(({ coin }) => coin);
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
        const { size } = leftOut;
        const drafts = await readDrafts({ ...collect, distributions: held });
        const draft = drafts.find(({ id }) => !tried.has(id));
        if (!draft) return { kind: "nothing", missing };
        const leftMs = claim.backsOffMs();
        if (leftMs > 0) throw new CollectError({ kind: "backing-off", leftMs });
        if (!distributionsOf(draft.wanted.sweeps).every(({ coin }) => held.has(coin.mint))) {
          const other = await claimDistributions(draft);
          if (other) return { kind: "other", claim: other };
          // Read again: another collect may have distributed the fees meanwhile.
          continue;
        }
        const signed = await plan(draft, { isAlone });
        if (signed === "lost") return { kind: "lost" };
        if (signed) {
          isSigned = true;
          if (!draft.isApart && drafts.length > 1) backoff.restTried(wallet.account.address);
          settleUnless((mint) => signed.transaction.sweptMints?.includes(mint) ?? false);
          return { kind: "signed", signed, distributions: held };
        }
        // Without the coins that it left out, others may fit into the transaction.
        if (leftOut.size > size) continue;
        tried.add(draft.id);
        missing ??= draft.missing;
      }
    } finally {
      if (!isSigned) settleUnless(() => false);
    }
  };
}
