import type { Lamports } from "../../lamports.ts";
import { distributionsOf, type Sweep } from "../../sweeps.ts";
import type { WalletWithCoins } from "../../wallets.ts";
import type { FailureBackoff } from "../failure-backoff.ts";
import type { Payers } from "../fee-budget.ts";
import type { AccountLocks, Lease, StoredTransaction } from "../locks/account-lock.ts";
import { createDistributionLocks, type OnWait } from "../locks/distribution-locks.ts";
import type { Packer } from "./packer.ts";
import type { Prospect, Prospects } from "./prospect.ts";
import type { SignedCollect } from "./plan.ts";

/** A collect that is ready to send, or why it is not. */
type PreparedCollect =
  | { readonly kind: "signed"; readonly signed: SignedCollect; readonly distributions: HeldLocks }
  /** Another collect distributes fees that this account shares. Find out its outcome, and prepare again. */
  | { readonly kind: "other"; readonly lease: Lease; readonly transaction: StoredTransaction }
  /** Too little would move. */
  | {
      readonly kind: "nothing";
      /** What is missing until the address can receive the fees; undefined if that is not the reason. */
      readonly missing?: Lamports | undefined;
    };

/** The locks of the sharing configs whose fees a transaction distributes. */
interface HeldLocks {
  /** The mints of their coins. */
  mints(): string[];
  /**
   * Call before sending it. Releases the locks of coins that it leaves out. Only spares others a fee, so it does not
   * matter whether a lock is lost.
   */
  store(transaction: StoredTransaction): Promise<void>;
  /** Call when others may see the outcome; with the slot if it landed. */
  release(landedSlot?: number): void;
}

/** Returns a function that reads what an account can collect, and simulates and signs it. Throws as the packer does. */
export function createPrepareCollect(needs: {
  prospects: Prospects;
  packer: Packer;
  backoff: FailureBackoff;
  locks: AccountLocks;
}) {
  const { prospects, packer, backoff, locks } = needs;
  const distributionLocks = createDistributionLocks(locks);

  return async ({
    wallet,
    payers,
    block,
    leftOut,
    endsAt,
    isAlone,
    onWait,
  }: {
    wallet: WalletWithCoins;
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
    /** By the coin's mint. */
    const held = new Map<string, Lease>();
    const isHeld = (sweep: Sweep) => sweep.stage !== "SHARED" || held.has(sweep.coin.mint);
    const distributions: HeldLocks = {
      mints: () => [...held.keys()],
      async store(transaction) {
        for (const [mint, lease] of held) {
          if (transaction.sweptMints?.includes(mint)) continue;
          lease.release();
          held.delete(mint);
        }
        await Promise.all([...held.values()].map((lease) => lease.store(transaction)));
      },
      release(landedSlot) {
        for (const lease of held.values()) lease.release(landedSlot);
        held.clear();
      },
    };
    /** The groups of which too little would move. */
    const tried = new Set<symbol>();
    let missing: Lamports | undefined;

    /** Takes the locks of its distributions. Undefined if another collect does one of them. */
    async function lock({
      part,
    }: Prospect): Promise<Extract<PreparedCollect, { kind: "other" }> | undefined> {
      distributions.release();
      const coins = distributionsOf(part.sweeps).map(({ coin }) => coin);
      // In the same order for all.
      for (const { mint, sharingConfig } of coins.toSorted((a, b) => (a.mint < b.mint ? -1 : 1))) {
        const lease = await distributionLocks.acquire(sharingConfig.address, endsAt, onWait);
        if (lease.openTransaction) return { kind: "other", lease, transaction: lease.openTransaction };
        held.set(mint, lease);
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
        backoff.assertReady(address);
        if (!prospect.part.sweeps.every(isHeld)) {
          const other = await lock(prospect);
          if (other) return other;
          // Read again: another collect may have distributed the fees meanwhile.
          continue;
        }
        const candidate = { prospect, mayDo: isHeld, payers, leftOut, endsAt };
        const signed = await packer.sign(candidate, { isAlone });
        if (signed) {
          isSigned = true;
          if (!prospect.isApart && all.length > 1) backoff.restTried(address);
          return { kind: "signed", signed, distributions };
        }
        // Without the coins that it left out, others may fit into the transaction.
        if (leftOut.size > wallet.coins.length - coins.length) continue;
        tried.add(prospect.id);
        missing ??= prospect.missing;
      }
    } finally {
      if (!isSigned) distributions.release();
    }
  };
}
