import { describe, expect, it } from "vitest";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { decide, type Landed, type Report } from "../../../src/chain/rpc/outcome.ts";
import type { LandedTransaction } from "../../../src/chain/rpc/read-transaction.ts";

const landed = (changed: Partial<Landed> = {}): Landed => ({
  ...{ kind: "landed", err: null, slot: 100 },
  ...changed,
});
/** A landing with its transaction. */
const read = (changed: Partial<LandedTransaction> = {}): Landed =>
  landed({
    transaction: {
      ...{ err: null, fee: toLamports(5_000), slot: 100, blockTime: 1 },
      balances: new Map([["a", { before: toLamports(1), after: toLamports(2) }]]),
      instructions: [],
      ...changed,
    },
  });

const REPORTS = {
  landed: () => landed(),
  read: () => read(),
  later: () => landed({ slot: 101 }),
  latest: () => landed({ slot: 102 }),
  failing: () => landed({ err: "ProgramFailedToComplete" }),
  dearer: () => read({ fee: toLamports(5_001) }),
  richer: () =>
    read({ balances: new Map([["a", { before: toLamports(1), after: toLamports(3) }]]) }),
  lessKnown: () =>
    read({ blockTime: undefined, instructions: [{ program: "p", accounts: [], data: "" }] }),
  absent: () => ({ kind: "absent" }),
  null: () => ({ kind: "null", slot: 100 }),
  // A second has five slots.
  null95: () => ({ kind: "null", slot: 95 }),
  null94: () => ({ kind: "null", slot: 94 }),
  down: () => ({ kind: "failed" }),
} satisfies Record<string, () => Report>;
const LANDED = { kind: "landed", err: null, slot: 100 };
const OUTCOMES = {
  open: undefined,
  landed: LANDED,
  withAmounts: { ...LANDED, transaction: { fee: 5_000n } },
  failing: { ...LANDED, err: "ProgramFailedToComplete" },
  expired: { kind: "expired" },
  unknown: { kind: "unknown", hosts: [] },
  /** The first two endpoints, or all three, contradict each other. */
  disputedBy2: { kind: "unknown", hosts: ["0", "1"] },
  disputedBy3: { kind: "unknown", hosts: ["0", "1", "2"] },
};

/** Reports of endpoints, such as `down 2999` for one that has been down for 2,999 ms. */
const toSightings = (text: string) =>
  text.split(", ").map((each, i) => {
    const [name, ms = 0] = each.split(" ");
    return { host: `${i}`, report: REPORTS[name as keyof typeof REPORTS](), forMs: Number(ms) };
  });

/** What the endpoints report, the outcome, and how many ms ago the transaction was sent. */
type Row = [string, keyof typeof OUTCOMES, number?];

describe.each<[string, Row[]]>([
  [
    "two say landed, with one slot and error",
    [
      ["landed, landed", "landed"],
      ["landed, read", "withAmounts"],
      ["read, lessKnown", "withAmounts"],
      ["failing, failing", "failing"],
      ["landed, landed, null", "landed"],
      ["read, read, failing 9999", "withAmounts"],
      ["read, read, absent 9999", "withAmounts"],
    ],
  ],
  [
    "one says landed, and no other one reports",
    [
      ["landed", "landed"],
      ["read", "withAmounts"],
      ["read, down 2999", "open"],
      ["read, down 3000", "withAmounts"],
      ["read, null 2999", "open"],
      ["read, null 3000", "withAmounts"],
      ["read, null95", "open"],
      ["read, null94", "withAmounts"],
      ["read, null94, down 2999", "open"],
      ["read, null94, down 3000", "withAmounts"],
    ],
  ],
  [
    "one says landed, and another contradicts it",
    [
      ["read 3000, absent 2999", "open"],
      ["read 2999, absent 3000", "open"],
      ["read 3000, absent 3000", "disputedBy2"],
      ["landed 3000, absent 3000, down 9999", "disputedBy2"],
      ["landed 3000, later 2999", "open"],
      ["landed 3000, later 3000", "disputedBy2"],
      ["landed 3000, failing 3000, null", "disputedBy2"],
      ["read 3000, dearer 3000", "disputedBy2"],
      ["read 3000, richer 3000", "disputedBy2"],
      ["landed 3000, later 3000, latest 3000", "disputedBy3"],
    ],
  ],
  [
    "all that answer prove that it is absent",
    [
      ["absent 1999", "open"],
      ["absent 2000", "expired"],
      ["absent 2000, absent 1999", "open"],
      ["absent 2000, absent 2000", "expired"],
      ["absent 2000, down 4999", "open"],
      ["absent 2000, down 5000", "expired"],
      ["absent 2000, down 5000, down 4999", "open"],
      ["absent 2000, down 5000, down 5000", "expired"],
      ["absent 9999, null 9999", "open"],
      ["absent 9999, null94 9999, absent 9999", "open"],
    ],
  ],
  [
    "none of this is said while its blockhash may live",
    [
      ["null 9999", "open", 149_999],
      ["null 9999", "unknown", 150_000],
      ["down 9999", "open", 149_999],
      ["down 9999, down 9999", "unknown", 150_000],
      ["absent 9999, null 9999", "unknown", 150_000],
      ["read, null", "unknown", 150_000],
      ["landed, landed", "landed", 150_000],
      ["read 3000, absent 3000", "disputedBy2", 150_000],
      ["absent 2000, down 5000", "expired", 150_000],
    ],
  ],
])("a transaction of which %s", (_, rows) => {
  it.each(rows)("%s: %s", (reports, name, sentMs = 0) => {
    const sightings = toSightings(reports);
    for (const inOrder of [sightings, sightings.toReversed()]) {
      const decided = decide(inOrder, sentMs);
      const hosts = decided?.kind === "unknown" ? { hosts: decided.hosts.toSorted() } : {};
      if (name === "withAmounts") expect(decided).toMatchObject(OUTCOMES[name]);
      else expect(decided && { ...decided, ...hosts }).toEqual(OUTCOMES[name]);
    }
  });
});

it("no endpoint's outcome is unknown 150 s after the send", () => {
  expect([decide([], 149_999), decide([], 150_000)]).toEqual([undefined, OUTCOMES.unknown]);
});
