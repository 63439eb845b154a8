import { getBase58Decoder } from "@solana/codecs-strings";
import { describe, expect, it } from "vitest";
import { creatorVaultOf, sharingConfigOf } from "../../support/launchpad-instructions.ts";
import { effectOf } from "../../../src/chain/history/effect.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import type { LandedTransaction } from "../../../src/chain/rpc/read-transaction.ts";

const base58 = getBase58Decoder();
const DISTRIBUTE = base58.decode(Buffer.from("a572670079cef751", "hex"));
const DISTRIBUTE_V2 = base58.decode(Buffer.from("ffcb134ff444089f01", "hex"));

const MINT = "BsZgJaxMAUbfUHZ3wbFEEXCUWwRhZvYHYMRCCpEsxi2Y";
const CONFIG = sharingConfigOf(MINT);
const VAULT_OF_CONFIG = creatorVaultOf(CONFIG);

const SYSTEM = "11111111111111111111111111111111";
/** A System transfer of so many lamports. */
function systemTransfer(from: string, to: string, lamports: number, program = SYSTEM) {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(2, 0);
  data.writeBigUInt64LE(BigInt(lamports), 4);
  return { program, accounts: [from, to], data: base58.decode(data) };
}

const account = { address: "address", creatorVault: "vault", ammVaultAuthority: "authority" };
const PLATFORM = "6EF8rrecthR5Dkzon8Nwu78hRvfCKubJ14M5uBEwF6P";
const balances = (changes: Record<string, readonly [before: number, after: number]>) =>
  new Map(
    Object.entries(changes).map(([key, [before, after]]) => [
      key,
      { before: toLamports(before), after: toLamports(after) },
    ]),
  );
const transfer = (transaction: Partial<LandedTransaction>) =>
  effectOf(
    { err: null, blockTime: 1_790_000_000, balances: new Map(), instructions: [], ...transaction },
    "sig",
    account,
  ).transfer;
const SHOWN = { signature: "sig", at: new Date("2026-09-21T14:13:20.000Z") };
const ofPlatform = (program: string, ...accounts: string[]) => [{ program, accounts, data: "" }];
const OF_COIN = ["mint", "curve", "config", "config's vault", "system"];
const distribution = (data: string, accounts: readonly string[]) => [
  { program: PLATFORM, accounts, data },
];

describe("the transfer of a transaction", () => {
  it.each([
    [
      "is COLLECTED when the vault loses lamports",
      { vault: [900_000, 400_000], address: [0, 500_000] },
      [],
      "COLLECTED",
      500_000n,
    ],
    [
      "is COLLECTED when the platform's instruction moves what arrives in the vault",
      { curve: [900_000, 400_000], vault: [4, 4], address: [0, 500_000] },
      [
        ...ofPlatform(PLATFORM, "payer", "address", "vault"),
        systemTransfer("vault", "address", 500_000),
      ],
      "COLLECTED",
      500_000n,
    ],
    [
      "is COLLECTED with what the collect moved, without a transfer beside it",
      { vault: [900_000, 400_000], address: [0, 5_500_000] },
      [
        ...ofPlatform(PLATFORM, "payer", "address", "vault"),
        systemTransfer("vault", "address", 500_000),
        systemTransfer("stranger", "address", 5_000_000),
      ],
      "COLLECTED",
      500_000n,
    ],
    [
      "is RECEIVED for a transfer beside a collect that moves nothing",
      { vault: [4, 4], address: [0, 500_000] },
      [
        ...ofPlatform(PLATFORM, "payer", "address", "vault"),
        systemTransfer("stranger", "address", 500_000),
      ],
      "RECEIVED",
      500_000n,
    ],
    [
      "is RECEIVED when the transfer from the vault is another program's",
      { vault: [4, 4], address: [0, 500_000] },
      [systemTransfer("vault", "address", 500_000, "other")],
      "RECEIVED",
      500_000n,
    ],
    [
      "is COLLECTED when the platform distributes a coin's shared fees to the address",
      { "config's vault": [900_000, 0], address: [0, 500_000], other: [0, 400_000] },
      [
        ...distribution(DISTRIBUTE, [...OF_COIN, "address", "other"]),
        systemTransfer("config's vault", "address", 500_000),
        systemTransfer("config's vault", "other", 400_000),
      ],
      "COLLECTED",
      500_000n,
    ],
    [
      "is COLLECTED when the platform does so with the instruction that has a payer",
      { address: [0, 500_000] },
      [
        ...distribution(DISTRIBUTE_V2, ["payer", ...OF_COIN, "address"]),
        systemTransfer("config's vault", "address", 500_000),
      ],
      "COLLECTED",
      500_000n,
    ],
    [
      "is RECEIVED for a transfer beside a distribution that pays the address nothing",
      { address: [0, 100_000] },
      [
        ...distribution(DISTRIBUTE, [...OF_COIN, "address"]),
        systemTransfer("stranger", "address", 100_000),
      ],
      "RECEIVED",
      100_000n,
    ],
    [
      "is RECEIVED when the platform distributes to others",
      { address: [0, 100_000] },
      distribution(DISTRIBUTE, [...OF_COIN, "other"]),
      "RECEIVED",
      100_000n,
    ],
    [
      "is RECEIVED when another instruction of the platform names accounts as a distribution does",
      { address: [0, 100_000] },
      ofPlatform(PLATFORM, MINT, "curve", CONFIG, VAULT_OF_CONFIG, "system", "address"),
      "RECEIVED",
      100_000n,
    ],
    [
      "is RECEIVED when another program names both",
      { vault: [4, 4], address: [0, 100_000] },
      ofPlatform("other", "address", "vault"),
      "RECEIVED",
      100_000n,
    ],
    [
      "is RECEIVED when the platform's instruction names only the vault, as a trade does",
      { vault: [4, 9], address: [0, 100_000] },
      ofPlatform(PLATFORM, "vault"),
      "RECEIVED",
      100_000n,
    ],
    ["is WITHDRAWN when the address loses lamports", { address: [7, 4] }, [], "WITHDRAWN", 3n],
    [
      "is WITHDRAWN when the address loses more than it collects",
      { vault: [9, 8], address: [7, 4] },
      [],
      "WITHDRAWN",
      3n,
    ],
  ] as const)("%s", (_name, changes, instructions, kind, lamports) => {
    expect(transfer({ balances: balances(changes), instructions })).toEqual({
      kind,
      lamports,
      ...SHOWN,
    });
  });

  it.each([
    [
      "a failed transaction",
      { err: "AccountNotFound", balances: balances({ address: [0, 10 ** 9] }) },
    ],
    [
      "a transaction that leaves the address as it was",
      { balances: balances({ address: [5, 5] }) },
    ],
    ["received dust", { balances: balances({ address: [0, 99_999] }) }],
    [
      "collected dust",
      {
        balances: balances({ vault: [9, 8], address: [0, 1] }),
        instructions: ofPlatform(PLATFORM, "payer", "address", "vault"),
      },
    ],
    [
      "one lamport beside a collect that moves nothing",
      {
        balances: balances({ vault: [4, 4], address: [0, 1] }),
        instructions: ofPlatform(PLATFORM, "payer", "address", "vault"),
      },
    ],
  ])("is left out for %s", (_name, transaction) => {
    expect(transfer(transaction)).toBeUndefined();
  });

  it("has no time when the block has none", () => {
    const blockTime = undefined;
    expect(transfer({ blockTime, balances: balances({ address: [7, 4] }) })!.at).toBeUndefined();
  });
});
