import { describe, expect } from "vitest";
import { setWrappedSol } from "../../src/sandbox/chain/accounts.ts";
import { rpcError } from "../support/rpc-answers.ts";
import { isMethod, NEVER_MS } from "../support/sandbox.ts";
import { chain, withWorld, world } from "../support/fixtures.ts";

const it = withWorld({}, { waits: { resendMs: NEVER_MS } });

const error = (code: string, members: object = {}) => ({
  success: false,
  error: code,
  message: expect.any(String),
  moved: "no",
  ...members,
});
const NAME_COINS = " Fees may also wait on coins: name up to 10 by their mints, in `mints`.";
const NOTHING = {
  success: false,
  error: "NOTHING_TO_COLLECT",
  message: `The vault is empty, or holds too little to be worth a transaction. Try again after more trading.${NAME_COINS}`,
  collected: "0.0000",
  moved: "no",
  left: [],
  lastCollects: [],
};
/** What a collect leaves that fails after its read. */
const LEFT = [expect.objectContaining({ mint: null, reason: "FAILED" })];
const post = (
  body: BodyInit,
  headers: Record<string, string> = { "content-type": "application/json" },
) => world.request("/collect", { method: "POST", headers, body });
const sent = () => world.sandbox.rpc.calls.filter(isMethod("sendTransaction")).length;

describe("POST /collect", () => {
  it("moves the vault's fees to the address in a transaction that the service pays for", async () => {
    const { id, address, creatorVault } = world.account("creator");
    const { status, body } = await world.collect(id);
    expect(status).toBe(200);
    expect(body).toEqual({
      success: true,
      collected: "3.1000",
      newBalance: "8.3000",
      txSignature: expect.any(String),
      left: [],
      lastCollects: [],
    });

    const landed = chain.landed(body.txSignature)!;
    expect(landed.err).toBeNull();
    expect(landed.feeLamports).toBeGreaterThanOrEqual(5_000n);
    expect(landed.feeLamports).toBeLessThan(5_100n);
    expect(chain.balance(address)).toBe(8_300_000_000n);
    expect(chain.balance(creatorVault)).toBe(chain.rentExemptMinimum(0));
    expect((await world.lookup("creator")).body.balance).toMatchObject({
      vault: "0.0000",
      pda: "8.3000",
      total: "8.3000",
      withdrawable: "8.1340",
    });

    world.forgetCalls();
    const again = await world.collect(id);
    expect([again.status, again.body]).toEqual([
      400,
      { ...NOTHING, lastCollect: expect.any(Object), lastCollects: [again.body.lastCollect] },
    ]);
    expect(sent()).toBe(0);
  });

  it("moves the AMM's fees with the others in one transaction", async () => {
    const { id } = world.account("graduate");
    expect((await world.lookup("graduate")).body.balance).toMatchObject({
      ...{ vault: "1.5000", pda: "0.7500", total: "2.2500", withdrawable: "2.2050" },
    });
    const { body } = await world.collect(id);
    expect(body).toMatchObject({ success: true, collected: "1.5000", newBalance: "2.2500" });
    expect((await world.lookup("graduate")).body.balance).toMatchObject({
      ...{ vault: "0.0000", pda: "2.2500", total: "2.2500", withdrawable: "2.2050" },
    });
  });

  it("moves the AMM's fees without others, into a vault that did not exist", async () => {
    const { id, address, creatorVault, ammVaultAuthority } = world.account("artist024");
    chain.setBalance(address, 1_000_000n);
    chain.setBalance(creatorVault, 0n);
    setWrappedSol(chain, ammVaultAuthority, 200_000_000n);
    // The vault keeps its rent-exempt minimum from the first fees.
    expect((await world.lookup("artist024")).body.balance.vault).toBe("0.1993");
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.1993" });
  });

  const below = (lamports: number) => [
    expect.objectContaining({ mint: null, lamports: String(lamports), reason: "BELOW_MINIMUM" }),
  ];
  const tooLittle = (sol: string, lamports: number) => ({
    ...NOTHING,
    message: `Only ${sol} SOL wait, too little to be worth a transaction. Try again after more trading.${NAME_COINS}`,
    left: below(lamports),
  });

  it.each([
    ["newcomer", NOTHING],
    ["dusty", tooLittle("0.00005", 50_000)],
  ])(
    "answers NOTHING_TO_COLLECT for %s, says how much waits, and sends nothing",
    async (handle, answer) => {
      world.forgetCalls();
      const { status, body } = await world.collect(world.account(handle).id);
      expect([status, body]).toEqual([400, answer]);
      expect(sent()).toBe(0);
    },
  );

  it("answers NOTHING_TO_COLLECT for an unknown id: its vault is empty", async () => {
    expect((await world.collect("18446744073709551615")).body).toEqual(NOTHING);
  });

  it("collects the minimum amount, but not one lamport less", async () => {
    const { id, creatorVault } = world.account("artist011");
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 99_999n);
    expect((await world.collect(id)).body).toEqual(tooLittle("0.000099999", 99_999));
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 100_000n);
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.0001" });
  });

  it("answers NOTHING_TO_COLLECT when the fees are below the rent-exempt minimum of a new address", async () => {
    const { id, address, creatorVault } = world.account("artist012");
    chain.setBalance(address, 0n);
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 100_000n);
    world.forgetCalls();
    const missing = chain.rentExemptMinimum(0) - 100_000n;
    const message = `The address is empty and cannot receive less than its rent-exempt minimum: ${missing} lamports are missing. Try again after more trading.${NAME_COINS}`;
    expect((await world.collect(id)).body).toEqual({ ...NOTHING, message, left: below(100_000) });
    expect((await world.lookup("artist012")).body.balance.vault).toBe("0.0001");
    expect(sent()).toBe(0);
    chain.setBalance(creatorVault, chain.balance(creatorVault) + missing);
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.0006" });
  });

  it("accepts any Content-Type and unknown fields", async () => {
    const body = JSON.stringify({
      socialId: world.account("newcomer").id,
      other: { __proto__: null },
    });
    for (const headers of [{}, { "content-type": "text/plain" }]) {
      expect((await post(body, headers)).body).toEqual(NOTHING);
    }
  });
});

describe("INVALID_SOCIAL_ID", () => {
  it.each([
    ["an empty body", ""],
    ["a body that is not JSON", "socialId=123"],
    ["truncated JSON", '{"socialId":"123"'],
    ["a string", '"123"'],
    ["a number", "123"],
    ["null", "null"],
    ["a list", '["123"]'],
    ["no socialId", "{}"],
    ["a socialId in another case", '{"socialid":"123"}'],
    ["an inherited socialId", '{"__proto__":{"socialId":"123"}}'],
    ["an id that is a number", '{"socialId":123}'],
    ["an id that is null", '{"socialId":null}'],
    ["an id that is a list", '{"socialId":["123"]}'],
    ["a handle", '{"socialId":"creator"}'],
    ["an id past 64 bits", '{"socialId":"18446744073709551616"}'],
  ])("is the answer to %s", async (_name, body) => {
    const { status, body: answer } = await post(body);
    expect([status, answer]).toEqual([400, error("INVALID_SOCIAL_ID")]);
  });

  it.each([
    ['{"socialId":"creator"}', "`socialId` must be", 'Received "creator".'],
    [`{"socialId":"${"7".repeat(5_000)}"}`, "`socialId` must be", `Received "${"7".repeat(40)}…".`],
    ['{"socialId":1523400000000000123}', "`socialId` must be", "Received a number."],
    ["{}", "`socialId` is missing.", "A lookup returns it."],
    ["socialId=123", "The body must be a JSON object such as", 'Received "socialId=123".'],
  ])("names the expected and the received value: %#", async (sent, expected, received) => {
    const { message } = (await post(sent)).body;
    expect(message).toContain(expected);
    expect(message).toContain(received);
    const socialId: unknown = sent.startsWith("{") ? JSON.parse(sent).socialId : undefined;
    if (typeof socialId !== "string") return;
    const mutation = "mutation ($id: String!) { collect(socialId: $id) { success } }";
    const { body } = await world.graphql(mutation, { id: socialId });
    expect(body.errors[0].message).toBe(message);
  });

  it("is the answer to broken UTF-8", async () => {
    const { status, body } = await post(new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]));
    expect([status, body]).toEqual([400, error("INVALID_SOCIAL_ID")]);
  });

  it("has status 413 when the body is too large, with and without a Content-Length", async () => {
    const large = JSON.stringify({ socialId: "1", padding: "x".repeat(20_000) });
    const withLength = await post(large);
    expect([withLength.status, withLength.body]).toEqual([413, error("INVALID_SOCIAL_ID")]);
    const stream = new Blob([large]).stream();
    const chunked = await world.request("/collect", {
      method: "POST",
      body: stream,
      duplex: "half",
    } as RequestInit);
    expect([chunked.status, chunked.body]).toEqual([413, error("INVALID_SOCIAL_ID")]);
  });
});

describe("a collect that names an address", () => {
  it("moves the fees if the address is the account's", async () => {
    const { id, address, creatorVault } = world.account("artist020");
    chain.setBalance(creatorVault, 1_000_000_000n);
    const { body } = await post(JSON.stringify({ socialId: id, address }));
    expect(body).toMatchObject({ success: true });
  });

  it.each([
    ["another account's address", () => world.account("creator").address],
    ["an empty text", () => ""],
    ["a number", () => 7],
  ])("is INVALID_SOCIAL_ID for %s, and nothing happens", async (_name, addressOf) => {
    const { id } = world.account("artist021");
    world.forgetCalls();
    const { status, body } = await post(JSON.stringify({ socialId: id, address: addressOf() }));
    expect([status, body]).toEqual([400, error("INVALID_SOCIAL_ID")]);
    expect(body.message).toContain("`address` is not the address of `socialId`");
    expect(world.chainCalls()).toEqual([]);
  });

  it("takes it in GraphQL, for each entry", async () => {
    const [one, other] = ["artist022", "artist023"].map((handle) => world.account(handle));
    chain.setBalance(one!.creatorVault, 1_000_000_000n);
    const { body } = await world.graphql(
      "mutation ($collects: [CollectInput!]!, $id: String!, $address: String) { collectMany(collects: $collects) { success } collect(socialId: $id, address: $address) { success } }",
      {
        collects: [
          { socialId: one!.id, address: one!.address },
          { socialId: other!.id, address: one!.address },
        ],
        ...{ id: other!.id, address: one!.address },
      },
    );
    expect(body.data).toEqual({ collectMany: [{ success: true }, null], collect: null });
    for (const { extensions } of body.errors)
      expect(extensions).toMatchObject({ code: "INVALID_SOCIAL_ID", moved: "no" });
    expect(body.errors).toHaveLength(2);
  });
});

describe("a fee payer that cannot pay", () => {
  it("is INSUFFICIENT_FUNDS, unless the vault is empty", async () => {
    const { feePayer } = world.sandbox;
    const before = chain.balance(feePayer);
    chain.setBalance(feePayer, chain.rentExemptMinimum(0) + 4_999n);
    world.forgetCalls();
    const { status, body } = await world.collect(world.account("artist015").id);
    const nothing = await world.collect(world.account("newcomer").id);
    chain.setBalance(feePayer, before);
    expect([status, body]).toEqual([
      500,
      error("INSUFFICIENT_FUNDS", { left: LEFT, lastCollects: [] }),
    ]);
    expect(nothing.body).toEqual(NOTHING);
    expect(sent()).toBe(0);
  });
});

describe("COLLECT_FAILED", () => {
  it.each(["getMultipleAccounts", "simulateTransaction", "getLatestBlockhash"])(
    "is the answer when the chain fails at %s, and no transaction is sent",
    async (failing) => {
      world.forgetCalls();
      world.sandbox.rpc.faults.add({ when: isMethod(failing), then: rpcError({ code: -32603 }) });
      const { status, body } = await world.collect(world.account("artist016").id);
      expect([status, body]).toEqual([
        500,
        error("COLLECT_FAILED", {
          ...{ retryAfterSeconds: 60, lastCollects: [] },
          ...(failing !== "getMultipleAccounts" && { left: LEFT }),
        }),
      ]);
      expect(sent()).toBe(0);
    },
  );
});
