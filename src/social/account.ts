/** A social-network account: its id, which never changes, and its present handle. */
export interface SocialAccount {
  /** Canonical decimal digits, at most 2^64-1. */
  readonly id: string;
  /** In the network's own spelling. */
  readonly handle: string;
}
