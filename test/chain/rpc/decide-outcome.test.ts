import { describe, expect, it } from "vitest";
import { decide } from "../../../src/chain/rpc/decide-outcome.ts";
import { toLamports } from "../../../src/chain/primitives/lamports.ts";
import { toFound, type TransactionReport } from "../../../src/chain/rpc/signature-status.ts";
import type { LandedTransaction } from "../../../src/chain/rpc/read-transactions.ts";

const toTransaction = (changed: Partial<LandedTransaction> = {}): LandedTransaction => ({
  err: null,
  fee: toLamports(5_000),
  slot: 100,
  blockTime: 1,
  unitsConsumed: 0,
  balances: new Map([["a", { before: toLamports(1), after: toLamports(2) }]]),
  instructions: [],
  ...changed,
});
const read = (changed: Partial<LandedTransaction> = {}): TransactionReport => ({
  kind: "read",
  transaction: toTransaction(changed),
});
const READ = read();
const FAILED = read({ err: "ProgramFailedToComplete" });
const RICHER = read({
  balances: new Map([["a", { before: toLamports(1), after: toLamports(9) }]]),
});
const LATER = read({ slot: 240 });
const FOUND = toFound({ err: null, slot: 100 });
const FOUND_FAILED = toFound({ err: "ProgramFailedToComplete", slot: 100 });
const SILENT: TransactionReport = { kind: "silent" };
const FAILING: TransactionReport = { kind: "failing" };
const UNKNOWN: TransactionReport = { kind: "unknown" };
const VALID: TransactionReport = { kind: "valid" };
const PAST: TransactionReport = { kind: "past" };
const ABSENT: TransactionReport = { kind: "absent" };

const CERTAIN = { kind: "landed", err: null, slot: 100, transaction: { isCertain: true } };
const UNCERTAIN = { ...CERTAIN, transaction: { isCertain: false } };
const WITHOUT_AMOUNTS = { kind: "landed", err: null, slot: 100 };
const DISPUTED_LANDING = { kind: "landed", err: undefined, slot: 0 };
const UNDECIDED = { kind: "undecided" };
const DISPUTED = { kind: "disputed" };
const expired = (agreeing: number) => ({ kind: "expired", agreeing });

const OVER = { isLifeOver: true, isAgreementOver: true };
type Row = [string, TransactionReport[], object, Parameters<typeof decide>[1]?];

describe.each([
  ["of two endpoints that return the same transaction", [READ, READ], CERTAIN],
  ["of the only endpoint", [READ], CERTAIN],
  ["that two of three return, whatever the third says", [RICHER, READ, READ], CERTAIN],
  ["with another time of the block", [READ, read({ blockTime: undefined })], CERTAIN],
  ["while the others are silent", [SILENT, READ, SILENT], UNCERTAIN],
  ["while the others fail for a moment", [FAILING, READ, SILENT], UNDECIDED],
  ["while the others go on failing", [FAILING, READ], UNCERTAIN, { isAloneOver: true }],
  ["while the other may still return it", [READ, FOUND], WITHOUT_AMOUNTS],
  ["once the other had enough time to return it", [READ, FOUND], UNCERTAIN, { isAloneOver: true }],
  ["while the other returns other amounts", [READ, RICHER], WITHOUT_AMOUNTS],
  ["while the other returns another error", [READ, FAILED], DISPUTED_LANDING],
  ["while the other returns another slot", [READ, LATER, SILENT], DISPUTED_LANDING],
  ["that the other has with another error", [READ, FOUND_FAILED], DISPUTED_LANDING],
  ["of two final statuses", [FOUND, FOUND], WITHOUT_AMOUNTS],
  ["of a final status of the only endpoint", [FOUND], WITHOUT_AMOUNTS],
  ["of a final status beside a silent endpoint", [FOUND, SILENT], UNDECIDED],
  ["that the other does not know", [READ, UNKNOWN], UNDECIDED],
  ["that the other does not know for long", [READ, UNKNOWN], UNDECIDED, { isAloneOver: true }],
  [
    "that the other does not know, and that landed",
    [READ, UNKNOWN],
    UNCERTAIN,
    { isAloneOver: true, hasLanded: true },
  ],
  ["that two others do not know", [UNKNOWN, UNKNOWN, FAILED], UNDECIDED],
  ["that another does not know after the blockhash's life", [READ, ABSENT], DISPUTED, OVER],
  ["of two proofs of expiry", [ABSENT, ABSENT], expired(2)],
  ["of one proof of the only endpoint", [ABSENT], expired(1)],
  ["of one proof beside a silent endpoint", [ABSENT, SILENT], UNDECIDED],
  ["of one proof beside a silent endpoint, in the end", [ABSENT, SILENT], DISPUTED, OVER],
  ["of two proofs beside a valid blockhash", [ABSENT, VALID, ABSENT], UNDECIDED],
  ["of two proofs after its life", [ABSENT, VALID, ABSENT], expired(2), { isLifeOver: true }],
  ["of two proofs beside an invented landing", [ABSENT, ABSENT, FOUND], expired(2)],
  ["of one early proof", [VALID, VALID, ABSENT], UNDECIDED, { isAgreementOver: true }],
  [
    "of one proof after its life, while there is time",
    [ABSENT, PAST],
    UNDECIDED,
    { isLifeOver: true },
  ],
  ["of no proof", [PAST, PAST], DISPUTED, OVER],
] satisfies Row[] as Row[])("the outcome %s", (_, reports, decision, passed) => {
  it("is as the table says, in any order of the endpoints", () => {
    expect(decide(reports, passed)).toMatchObject(decision);
    expect(decide(reports.toReversed(), passed)).toMatchObject(decision);
  });

  it("has no more than the table says", () => {
    const { transaction } = decide(reports, passed) as { transaction?: unknown };
    expect(transaction !== undefined).toBe("transaction" in decision);
  });
});
