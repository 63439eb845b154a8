/** A result of a collect, as GraphQL returns it. */
export interface Collected {
  readonly txSignature: string | null;
  readonly collectedLamports: string;
}

/**
 * Adds up what collects have moved. One transaction can serve many accounts, and several results
 * can report one account's part of it, so parts are kept by account and transaction. Of several
 * entries of one account in a `collectMany` one has the part, and the others 0: the largest counts.
 */
export function createLedger() {
  const parts = new Map<string, bigint>();
  return {
    /** Records a result for an account, or one of its `lastCollects`. */
    record(socialId: string, { txSignature, collectedLamports }: Collected): void {
      if (txSignature === null) return;
      const key = `${socialId} ${txSignature}`;
      const lamports = BigInt(collectedLamports);
      if (lamports > (parts.get(key) ?? 0n)) parts.set(key, lamports);
    },

    /** The sum in lamports. */
    total: () => parts.values().reduce((sum, lamports) => sum + lamports, 0n),
  };
}
