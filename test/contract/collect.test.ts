import { describe, expect } from "vitest";
import { addCreatorFees } from "../../src/sandbox/chain/creator-fees.ts";
import { readConfig } from "../../src/config.ts";
import { rpcError } from "../support/rpc-answers.ts";
import { isMethod, NEVER_MS } from "../support/sandbox.ts";
import { withWorld, world } from "../support/fixtures.ts";
import { startWorld } from "../support/world.ts";

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
  left: expect.any(Array),
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

    const landed = world.sandbox.chain.landed(body.txSignature)!;
    expect(landed.err).toBeNull();
    expect(landed.feeLamports).toBeGreaterThanOrEqual(5_000n);
    expect(landed.feeLamports).toBeLessThan(5_100n);
    expect(world.sandbox.chain.balance(address)).toBe(8_300_000_000n);
    expect(world.sandbox.chain.balance(creatorVault)).toBe(
      world.sandbox.chain.rentExemptMinimum(0),
    );
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

  it("collects fees that arrive after a collect", async () => {
    const { id, address } = world.account("artist010");
    await world.collect(id);
    const before = world.sandbox.chain.balance(address);
    addCreatorFees(world.sandbox.chain, address, 250_000_000n);
    expect((await world.lookup("artist010")).body.balance.vault).toBe("0.2500");
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.2500" });
    expect(world.sandbox.chain.balance(address)).toBe(before + 250_000_000n);
  });

  const tooLittle = (sol: string) => ({
    ...NOTHING,
    message: `Only ${sol} SOL wait, too little to be worth a transaction. Try again after more trading.${NAME_COINS}`,
  });

  it.each([
    ["newcomer", NOTHING],
    ["dusty", tooLittle("0.00005")],
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
    const { chain } = world.sandbox;
    const { id, creatorVault } = world.account("artist011");
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 99_999n);
    expect((await world.collect(id)).body).toEqual(tooLittle("0.000099999"));
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 100_000n);
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.0001" });
  });

  it("answers NOTHING_TO_COLLECT when the fees are below the rent-exempt minimum of a new address", async () => {
    const { chain } = world.sandbox;
    const { id, address, creatorVault } = world.account("artist012");
    chain.setBalance(address, 0n);
    chain.setBalance(creatorVault, chain.rentExemptMinimum(0) + 100_000n);
    world.forgetCalls();
    const missing = chain.rentExemptMinimum(0) - 100_000n;
    const message = `The address is empty and cannot receive less than its rent-exempt minimum: ${missing} lamports are missing. Try again after more trading.${NAME_COINS}`;
    expect((await world.collect(id)).body).toEqual({ ...NOTHING, message });
    expect((await world.lookup("artist012")).body.balance.vault).toBe("0.0001");
    expect(sent()).toBe(0);
    chain.setBalance(creatorVault, chain.balance(creatorVault) + missing);
    expect((await world.collect(id)).body).toMatchObject({ success: true, collected: "0.0006" });
  });

  it("sends one transaction for concurrent collects of one account, and gives each its result", async () => {
    const { id } = world.account("artist013");
    const answers = await world.collectTogether(id, 20);
    const signatures = new Set(answers.map(({ body }) => body.txSignature));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(signatures.size).toBe(1);
  });

  it("collects each of many accounts once, and reports its own amount, when all are requested at once", async () => {
    const handles = Array.from({ length: 9 }, (_, i) => `artist02${i + 1}`);
    const before = await Promise.all(handles.map((handle) => world.lookup(handle)));
    const answers = await Promise.all(
      handles.map((handle) => world.collect(world.account(handle).id)),
    );
    expect(answers.map(({ body }) => body.collected)).toEqual(
      before.map(({ body }) => body.balance.vault),
    );
    for (const handle of handles) expect(world.sandbox.landedCollectsOf(handle)).toHaveLength(1);
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

  it("drops leading zeros of an id, so that one account has one address", async () => {
    const { address } = world.account("artist014");
    const before = world.sandbox.chain.balance(address);
    expect((await world.collect(`0${world.account("artist014").id}`)).status).toBe(200);
    expect(world.sandbox.chain.balance(address)).toBeGreaterThan(before);
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
    ["an empty id", '{"socialId":""}'],
    ["a handle", '{"socialId":"creator"}'],
    ["a negative id", '{"socialId":"-1"}'],
    ["an id with a space", '{"socialId":" 1"}'],
    ["an id with an exponent", '{"socialId":"1e5"}'],
    ["an id past 64 bits", '{"socialId":"18446744073709551616"}'],
    ["an id of 21 digits", '{"socialId":"000000000000000000001"}'],
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
    const larger = await post(JSON.stringify({ socialId: "1", padding: "x".repeat(900_000) }));
    expect(larger.status).toBe(413);
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
    world.sandbox.chain.setBalance(creatorVault, 1_000_000_000n);
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
    world.sandbox.chain.setBalance(one!.creatorVault, 1_000_000_000n);
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
  it.each([
    ["was never funded", 0n],
    ["has less than the fee", 650_240n + 4_999n],
    ["has only the rent-exempt minimum", 650_240n],
  ])("is INSUFFICIENT_FUNDS when it %s, unless the vault is empty", async (_name, lamports) => {
    const { feePayerKeypair: feePayer } = readConfig(world.sandbox.env).secrets;
    const address = feePayer.publicKey.toBase58();
    const before = world.sandbox.chain.balance(address);
    world.sandbox.chain.setBalance(address, lamports);
    world.forgetCalls();
    try {
      const { status, body } = await world.collect(world.account("artist015").id);
      expect([status, body]).toEqual([
        500,
        error("INSUFFICIENT_FUNDS", { left: LEFT, lastCollects: [] }),
      ]);
      expect((await world.collect(world.account("newcomer").id)).body).toEqual(NOTHING);
      expect(sent()).toBe(0);
    } finally {
      world.sandbox.chain.setBalance(address, before);
    }
  });
});

describe("COLLECT_FAILED", () => {
  const broken = rpcError({ code: -32603 });

  it.each(["getMultipleAccounts", "simulateTransaction", "getLatestBlockhash"])(
    "is the answer when the chain fails at %s, and no transaction is sent",
    async (failing) => {
      const shortTimeout = await startWorld({ RPC_TIMEOUT_MS: "1000" });
      try {
        for (const [then, { collect, sandbox }] of [
          [broken, world],
          ["reset", world],
          ["hang", shortTimeout],
        ] as const) {
          sandbox.rpc.calls.length = 0;
          const lift = sandbox.rpc.faults.add({ when: isMethod(failing), then });
          const { status, body } = await collect(sandbox.account("artist016").id);
          expect([status, body]).toEqual([
            500,
            error("COLLECT_FAILED", {
              ...{ retryAfterSeconds: 60, lastCollects: [] },
              ...(failing !== "getMultipleAccounts" && { left: LEFT }),
            }),
          ]);
          expect(sandbox.rpc.calls.filter(isMethod("sendTransaction"))).toEqual([]);
          lift();
        }
      } finally {
        await shortTimeout.close();
      }
    },
  );

  it("of one collect does not affect the next", async () => {
    const { id } = world.account("artist016");
    const lift = world.sandbox.rpc.faults.add({
      when: isMethod("simulateTransaction"),
      then: "reset",
    });
    expect((await world.collect(id)).status).toBe(500);
    lift();
    expect((await world.collect(id)).status).toBe(200);
  });

  it("is the answer when the hour's fee budget is spent", async () => {
    const smallBudget = await startWorld({ FEE_BUDGET_LAMPORTS_PER_HOUR: "22000" });
    try {
      const handles = ["artist001", "artist002", "artist003"];
      const answers = [];
      for (const handle of handles)
        answers.push(await smallBudget.collect(smallBudget.account(handle).id));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 500]);
      expect(answers[2]!.body).toEqual(
        error("COLLECT_FAILED", {
          ...{
            scope: "CALLER",
            retryAfterSeconds: expect.any(Number),
            left: LEFT,
            lastCollects: [],
          },
        }),
      );
      expect(answers[2]!.headers.get("retry-after")).toBe(
        String(answers[2]!.body.retryAfterSeconds),
      );
    } finally {
      await smallBudget.close();
    }
  });

  it.each(["0", "4999"])(
    "has no Retry-After if the hour's fee budget, %s, pays for no collect",
    async (env) => {
      const tooSmall = await startWorld({ FEE_BUDGET_LAMPORTS_PER_HOUR: env });
      try {
        const { id } = tooSmall.account("creator");
        const message = "The service's fee budget does not allow this collect.";
        const { status, body, headers } = await tooSmall.collect(id);
        expect([status, body]).toEqual([
          500,
          error("COLLECT_FAILED", { message, scope: "SERVICE", left: LEFT, lastCollects: [] }),
        ]);
        expect(headers.get("retry-after")).toBeNull();
        const mutation = "mutation ($id: String!) { collect(socialId: $id) { success } }";
        const graphql = await tooSmall.graphql(mutation, { id });
        expect(graphql.body.errors).toEqual([
          expect.objectContaining({
            message,
            extensions: {
              ...{ code: "COLLECT_FAILED", moved: "no", scope: "SERVICE" },
              ...{ left: LEFT, lastCollects: [] },
            },
          }),
        ]);
        expect(tooSmall.sandbox.landedCollects()).toEqual([]);
      } finally {
        await tooSmall.close();
      }
    },
  );
});
