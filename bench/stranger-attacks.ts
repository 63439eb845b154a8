import { newMint } from "../test/support/new-mint.ts";
import type { Answer, Client } from "../test/support/client.ts";
import type { TestSandbox } from "../test/support/sandbox.ts";

const SOL = 10n ** 9n;
/** No transaction can write to it, so no simulation of a distribution to it succeeds. */
const SYSVAR = "SysvarRent111111111111111111111111111111111";
const UNKNOWN_CURSOR = "5".repeat(88);
const BALANCE = `query ($id: String!, $mints: [String!]) {
  walletById(socialId: $id) { balance(mints: $mints) { vault } }
}`;
const HISTORY = `query ($id: String!, $after: String) {
  walletById(socialId: $id) { history(after: $after) { nodes { signature } } }
}`;
const ACCOUNTS = 10;
/** The accounts that strangers collect are the last of the 200 artists. */
const FIRST = 191;

/** One request of a stranger, with the headers of its address. */
type Attack = (client: Client, i: number, headers: Record<string, string>) => Promise<Answer>;

const newId = (i: number) => String(10_000_000 + i);

export const artist = (sandbox: TestSandbox, number: number) =>
  sandbox.account(`artist${String(number).padStart(3, "0")}`);

/** Requests that each cost calls to the chain. */
export function createAttacks(sandbox: TestSandbox): Readonly<Record<string, Attack>> {
  /** Coins of an account that no collect can distribute. */
  function failingCoins(creator: string): string[] {
    return Array.from({ length: 5 }, () => {
      const mint = newMint();
      const shareholders = [
        { address: creator, bps: 9_999 },
        { address: SYSVAR, bps: 1 },
      ];
      sandbox.coins.launch({ mint, creator, shareholders, fees: SOL });
      return mint;
    });
  }
  const accounts = Array.from({ length: ACCOUNTS }, (_, i) => artist(sandbox, FIRST + i));
  const mints = accounts.map(({ address }) => failingCoins(address));

  return {
    lookups: (client, i, headers) => client.graphql(BALANCE, { id: newId(i) }, headers),
    coins: (client, i, headers) =>
      client.graphql(
        BALANCE,
        { id: newId(i), mints: Array.from({ length: 10 }, newMint) },
        headers,
      ),
    collects: (client, i, headers) =>
      client.collect(accounts[i % ACCOUNTS]!.id, headers, mints[i % ACCOUNTS]),
    histories: (client, i, headers) =>
      client.graphql(HISTORY, { id: newId(i), after: UNKNOWN_CURSOR }, headers),
  };
}
