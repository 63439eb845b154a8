import { PublicKey } from "@solana/web3.js";
import { memoize } from "../../../upstream/memoize.ts";
import type { Lamports } from "../../lamports.ts";
import type { Rpc } from "../../rpc/rpc-client.ts";
import { RpcError } from "../../rpc/rpc-error.ts";
import { distributionsOf } from "../../sweeps.ts";
import type { WalletWithCoins } from "../../wallets.ts";
import type { FailureBackoff } from "../failure-backoff.ts";
import type { Payers } from "../fee-budget.ts";
import type { BlocksOf } from "../landed-outcome.ts";
import type { AccountLocks, Lease, StoredTransaction } from "../locks/account-lock.ts";
import { createDistributionLocks } from "../locks/distribution-locks.ts";
import { createPacker } from "./packer.ts";
import type { Prospects } from "./prospect.ts";
import type { SignedCollect } from "./sign-alone.ts";

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
  /**
   * Call before sending it. Releases the locks of coins that it leaves out. Only spares others a fee, so it does not
   * matter whether a lock is lost.
   */
  store(transaction: StoredTransaction): Promise<void>;
  /** Call when others may see the outcome; with the slot if it landed. */
  release(landedSlot?: number): void;
}

/**
 * The part of the time between two polls for a landed transaction in which signed transactions share a blockhash.
 * Less than 1, so that an account's next transaction never has the same bytes as its last.
 */
const BLOCKHASH_MAX_AGE = 3 / 4;

/** Returns a function that reads what an account can collect, and simulates and signs it. Throws as the packer does. */
export function createPrepareCollect(
  needs: Omit<Parameters<typeof createPacker>[0], "getBlockhash"> & {
    rpc: Pick<Rpc, "getLatestBlockhash">;
    prospects: Prospects;
    backoff: FailureBackoff;
    locks: AccountLocks;
    /** Between two polls for a landed transaction. */
    pollMs: number;
  },
) {
  const { rpc, prospects, backoff, locks, pollMs } = needs;
  const getBlockhash = memoize(async () => {
    const latest = await rpc.getLatestBlockhash();
    assertReadable(latest.blockhash);
    return latest;
  }, BLOCKHASH_MAX_AGE * pollMs);
  const packer = createPacker({ ...needs, getBlockhash });
  const distributionLocks = createDistributionLocks(locks);

  return async ({
    wallet,
    payers,
    blocksOf,
    endsAt,
    isAlone,
  }: {
    wallet: WalletWithCoins;
    payers: Payers;
    blocksOf: BlocksOf;
    endsAt: number;
    isAlone: boolean;
  }): Promise<PreparedCollect> => {
    const { address } = wallet.account;
    /** By the coin's mint. */
    const held = new Map<string, Lease>();
    const distributions: HeldLocks = {
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
    let isSigned = false;
    try {
      for (;;) {
        const prospect = await prospects.read(wallet, {
          leftOutMs: (sweep) => backoff.leftOutMs(address, sweep, blocksOf(sweep.coin.mint)),
          mayFail: (distribution) => backoff.mayFail(distribution),
        });
        if (!prospect) return { kind: "nothing" };
        backoff.assertReady(address);
        const coins = distributionsOf(prospect.part.sweeps).map(({ coin }) => coin);
        if (coins.every(({ mint }) => held.has(mint))) {
          const signed = await packer.sign({ prospect, payers, endsAt }, { isAlone });
          if (!signed) return { kind: "nothing", missing: prospect.missing };
          isSigned = true;
          return { kind: "signed", signed, distributions };
        }
        distributions.release();
        // In the same order for all. Then read again: another collect may have distributed the fees meanwhile.
        for (const { mint, sharingConfig } of coins.toSorted((a, b) => (a.mint < b.mint ? -1 : 1))) {
          const lease = await distributionLocks.acquire(sharingConfig.address, endsAt);
          if (lease.openTransaction) return { kind: "other", lease, transaction: lease.openTransaction };
          held.set(mint, lease);
        }
      }
    } finally {
      if (!isSigned) distributions.release();
    }
  };
}

/** An unreadable blockhash must not be shared by other transactions. */
function assertReadable(blockhash: string): void {
  try {
    new PublicKey(blockhash);
  } catch (cause) {
    throw new RpcError("unreadable", "getLatestBlockhash", "", { cause });
  }
}
