/** A social-network account: its id, which never changes, and its current handle. */
export interface SocialAccount {
  /** Canonical decimal digits, at most 2^64-1. */
  readonly id: string;
  /** As the network spells it. */
  readonly handle: string;
}
