/** What an account shows of itself; null where the network gives nothing usable. */
export interface Profile {
  readonly name: string | null;
  /** Whether the network has verified the account. */
  readonly verified: boolean | null;
  readonly followers: number | null;
  /** An https URL. */
  readonly pictureUrl: string | null;
}

/** A social-network account: its id, which never changes, its current handle and its profile. */
export interface SocialAccount {
  /** Canonical decimal digits, at most 2^64-1. */
  readonly id: string;
  /** As the network spells it. */
  readonly handle: string;
  readonly profile: Profile;
}

/** What an account is looked up by: its lower-case handle or its id. */
export interface AccountName {
  readonly by: "handle" | "id";
  readonly name: string;
  /** Differs for a handle and an id of the same digits. Redis remembers it. */
  readonly key: string;
}

export function toAccountName(by: AccountName["by"], name: string): AccountName {
  return { by, name, key: by === "handle" ? `@${name}` : name };
}
