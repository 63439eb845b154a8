import { expect } from "vitest";
import { LAUNCHPAD_FEES_PROGRAM_ID } from "../../src/chain/launchpad/program-ids.ts";
import { readConfig } from "../../src/config.ts";
import type { LoopbackAnswer } from "../../src/sandbox/loopback-server.ts";
import type { Answer } from "./client.ts";
import { eventually } from "./eventually.ts";
import type { TlsProxy } from "./doubles/tls-proxy.ts";
import { rpcError, rpcResult } from "./rpc-answers.ts";
import { isMethod, onNext, isLook } from "./sandbox.ts";
import { type AMPLE_DEADLINES, BOTH_ENDPOINTS, type World } from "./world.ts";

const json = (
  status: number,
  body: object,
  headers: Record<string, string> = {},
): LoopbackAnswer => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});
const resetIn = (seconds: number) => String(Math.ceil(Date.now() / 1000) + seconds);

const lookup = (world: World) => world.lookup("creator");
const collect = (world: World) => world.collect(world.account("creator").id);
const setFeePayer = (world: World, lamports: bigint) => {
  const { feePayerKeypair: feePayer } = readConfig(world.sandbox.env).secrets;
  world.sandbox.chain.setBalance(feePayer.publicKey.toBase58(), lamports);
};
const untilCalled = (world: World, method: string) =>
  eventually(() => {
    expect(world.chainCalls()).toContain(method);
  });

interface Fault {
  readonly fault: string;
  /**
   * Causes the fault, sends the request, and returns the response of the table. `rpcProxy` is
   * before the first endpoint.
   */
  readonly run: (world: World, rpcProxy: TlsProxy) => Promise<Answer>;
  readonly answer: string;
  /** The variable that limits the time of the response, or a moment. */
  readonly time: keyof typeof AMPLE_DEADLINES | "at once" | "once the blockhash has expired";
  /** The state of vault and chain afterwards. */
  readonly chain: "untouched" | "collected once" | "failed transaction, fee paid";
  /**
   * Variables to set, such as a short deadline. Waiting for any other deadline exceeds the test's
   * timeout.
   */
  readonly env?: Record<string, string>;
}

const TWO_ENDPOINTS = { SOLANA_RPC_URL: BOTH_ENDPOINTS };
/** Looks up during each of these faults of the network, of which five would open the circuit. */
const during =
  (...faults: (LoopbackAnswer | "reset" | "hang" | "cut")[]) =>
  async ({ sandbox: { social }, lookup }: World) => {
    const answers: Answer[] = [];
    for (const then of faults) {
      const stop = social.faults.add({ then });
      answers.push(await lookup("creator"));
      stop();
      expect(social.calls.splice(0)).not.toEqual([]);
    }
    expect(new Set(answers.map(({ body }) => body.error)).size).toBe(1);
    return answers[0]!;
  };
const atOnce = { time: "at once", chain: "untouched" } as const;
const unavailable = { answer: "503 SOCIAL_API_UNAVAILABLE", ...atOnce };
const found = { answer: "200", ...atOnce };
const collected = { answer: "200", time: "COLLECT_TIMEOUT_MS", chain: "collected once" } as const;

/** What each fault of an upstream does to a request: the tables of docs/faults.md. */
export const FAULTS: readonly { readonly title: string; readonly rows: readonly Fault[] }[] = [
  {
    title: "The social network, at a lookup",
    rows: [
      {
        fault: "429 with a reset",
        run: (world) =>
          during(json(429, { title: "Too Many Requests" }, { "x-rate-limit-reset": resetIn(800) }))(
            world,
          ),
        answer: "429 SOCIAL_RATE_LIMITED, Retry-After until the reset",
        ...atOnce,
      },
      {
        fault: "any lookup between a 429 and its reset",
        run: async (world) => {
          world.sandbox.social.faults.add({
            times: 1,
            then: json(429, {}, { "x-rate-limit-reset": resetIn(800) }),
          });
          await lookup(world);
          world.forgetCalls();
          const answer = await world.lookup("artist001");
          expect(world.sandbox.social.calls).toEqual([]);
          return answer;
        },
        answer: "429 SOCIAL_RATE_LIMITED, Retry-After until the reset",
        ...atOnce,
      },
      {
        fault: "503 in JSON; 503 in plain text; 401, token refused; 402, credit used up",
        run: during(
          json(503, { title: "Service Unavailable" }),
          { status: 503, body: "upstream connect error" },
          json(401, { title: "Unauthorized" }),
          json(402, { title: "CreditsDepleted" }),
        ),
        ...unavailable,
      },
      {
        fault: "503 once",
        run: (world) => {
          world.sandbox.social.faults.add({ times: 1, then: json(503, {}) });
          return lookup(world);
        },
        ...found,
      },
      {
        fault: "no response",
        run: during("hang"),
        ...unavailable,
        time: "SOCIAL_TIMEOUT_MS",
        env: { SOCIAL_TIMEOUT_MS: "1000" },
      },
      {
        fault: "403; connection reset; truncated response; HTML instead of JSON",
        run: during(json(403, { title: "Forbidden" }), "reset", "cut", {
          status: 200,
          body: "<html></html>",
        }),
        ...unavailable,
      },
      {
        fault: "an account that was not requested",
        run: during(json(200, { data: [{ id: "7", name: "x", username: "other" }] })),
        ...unavailable,
      },
      {
        fault: "400 for a batch because of another name in it",
        run: async (world) => {
          world.sandbox.social.faults.add({
            when: ({ names }) => names.includes("artist007"),
            then: json(400, { title: "Invalid Request" }),
          });
          const handles = ["artist001", "artist007", "creator", "artist009"];
          const { status, body, headers } = await world.graphql(
            "query ($handles: [String!]!) { wallets(handles: $handles) { handle } }",
            { handles },
          );
          expect(body.data.wallets).toEqual([
            { handle: "artist001" },
            null,
            { handle: "creator" },
            { handle: "artist009" },
          ]);
          expect(body.errors[0].extensions.code).toBe("SOCIAL_API_UNAVAILABLE");
          return { status, body: body.data.wallets[2], headers };
        },
        ...found,
      },
      {
        fault: "any lookup after a second of failures",
        run: async (world) => {
          world.sandbox.social.faults.add({ then: "reset" });
          for (;;) {
            world.forgetCalls();
            const answer = await lookup(world);
            if (world.sandbox.social.calls.length === 0) return answer;
          }
        },
        ...unavailable,
      },
    ],
  },
  {
    title: "The chain, at a lookup",
    rows: [
      ...(
        [
          ["the first endpoint is down", "reset"],
          ["the first endpoint does not respond", "hang"],
          ["the first endpoint returns 429", { status: 429, body: "" }],
          ["the first endpoint is behind (-32005)", rpcError({ code: -32005 })],
          [
            "the first endpoint has not reached the requested slot (-32016)",
            rpcError({ code: -32016 }),
          ],
          ["the first endpoint returns HTML", { status: 200, body: "<html></html>" }],
        ] as const
      ).map(([fault, then]): Fault => ({
        fault,
        run: (world) => {
          world.sandbox.rpc.faults.add({ then });
          return lookup(world);
        },
        answer: "200",
        time: then === "hang" ? "RPC_TIMEOUT_MS" : "at once",
        chain: "untouched",
        // The next endpoint is called after a tenth of the deadline, and has the remaining time.
        env: then === "hang" ? { ...TWO_ENDPOINTS, RPC_TIMEOUT_MS: "15000" } : TWO_ENDPOINTS,
      })),
      {
        fault: "the idle connection was closed or reset",
        run: async (world, rpcProxy) => {
          await lookup(world);
          await rpcProxy.hangUp();
          expect((await lookup(world)).status).toBe(200);
          rpcProxy.reset();
          return lookup(world);
        },
        ...found,
      },
      {
        fault: "any lookup after one whose connection was silent",
        run: async (world, rpcProxy) => {
          await lookup(world);
          void rpcProxy.silence();
          let answer = await lookup(world);
          expect(answer.status).toBe(500);
          // A busy machine may need longer for a new connection.
          while (answer.status !== 200) answer = await lookup(world);
          return answer;
        },
        ...found,
        env: { RPC_TIMEOUT_MS: "1000" },
      },
      {
        fault: "no endpoint works",
        run: (world) => {
          world.sandbox.rpc.faults.add({ then: "reset" });
          world.secondRpc.faults.add({ then: { status: 503, body: "" } });
          return lookup(world);
        },
        answer: "500 LOOKUP_FAILED",
        ...atOnce,
        env: TWO_ENDPOINTS,
      },
      {
        fault: "no endpoint responds",
        run: (world) => {
          world.sandbox.rpc.faults.add({ then: "hang" });
          world.secondRpc.faults.add({ then: "hang" });
          return lookup(world);
        },
        answer: "500 LOOKUP_FAILED",
        time: "RPC_TIMEOUT_MS",
        chain: "untouched",
        env: { ...TWO_ENDPOINTS, RPC_TIMEOUT_MS: "1000" },
      },
    ],
  },
  {
    title: "The chain, at a collect",
    rows: [
      {
        fault: "the first endpoint is down",
        run: (world) => {
          world.sandbox.rpc.faults.add({ then: "reset" });
          return collect(world);
        },
        ...collected,
        env: TWO_ENDPOINTS,
      },
      {
        fault: "no endpoint works",
        run: (world) => {
          world.sandbox.rpc.faults.add({ then: "reset" });
          return collect(world);
        },
        answer: "500 COLLECT_FAILED",
        ...atOnce,
      },
      ...(
        [
          ["drops every transaction", "sendTransaction", "x"],
          ["knows no transaction", "getSignatureStatuses", { context: { slot: 1 }, value: [null] }],
          ["cannot return the landed transaction", "getTransaction", null],
        ] as const
      ).map(([fault, method, result]): Fault => ({
        fault: `the first endpoint ${fault}`,
        run: (world) => {
          world.sandbox.rpc.faults.add({ when: isMethod(method), then: rpcResult(result) });
          return collect(world);
        },
        ...collected,
        env: TWO_ENDPOINTS,
      })),
      {
        fault: "the node drops the first two sends",
        run: (world) => {
          // A node that accepts a transaction and then drops it responds with success.
          world.sandbox.rpc.faults.add({
            when: isMethod("sendTransaction"),
            times: 2,
            then: rpcResult("x"),
          });
          return collect(world);
        },
        ...collected,
      },
      {
        fault: "the response to the send is lost",
        run: (world) => {
          world.sandbox.rpc.faults.add({
            when: isMethod("sendTransaction"),
            times: 1,
            then: "reset",
            after: true,
          });
          return collect(world);
        },
        ...collected,
      },
      {
        fault: "the transaction fails on the chain after a good simulation",
        run: (world) => {
          const { chain, rpc } = world.sandbox;
          const { address } = world.account("creator");
          onNext(rpc, isMethod("sendTransaction"), () => {
            // The launch platform pays no account of this program.
            chain.setAccount(address, {
              ...chain.account(address)!,
              owner: LAUNCHPAD_FEES_PROGRAM_ID,
            });
          });
          return collect(world);
        },
        answer: "500 COLLECT_FAILED",
        time: "COLLECT_TIMEOUT_MS",
        chain: "failed transaction, fee paid",
      },
      {
        fault: "the blockhash expires before any send succeeds",
        run: async (world) => {
          world.sandbox.rpc.faults.add({
            when: isMethod("sendTransaction"),
            then: rpcError({ code: -32005 }),
          });
          const answer = collect(world);
          await untilCalled(world, "sendTransaction");
          world.sandbox.chain.advanceSlots(200);
          return answer;
        },
        answer: "500 COLLECT_FAILED, saying that nothing was moved",
        time: "once the blockhash has expired",
        chain: "untouched",
      },
      {
        fault: "the confirmation is late, but within the caller's time",
        run: (world) => {
          const nothing = rpcResult({ context: { slot: 1 }, value: [null] });
          world.sandbox.rpc.faults.add({
            when: isLook,
            times: 3,
            then: nothing,
          });
          return collect(world);
        },
        ...collected,
      },
      {
        fault: "the confirmation comes after the caller's time is up",
        run: async (world) => {
          world.sandbox.rpc.faults.add({ when: isLook, then: "reset" });
          let answer = await collect(world);
          // A busy machine may need longer to sign and send.
          while (!/transaction \w{80}/.test(answer.body.message as string))
            answer = await collect(world);
          world.sandbox.rpc.faults.clear();
          await world.gateway.settled();
          let next = await collect(world);
          while (next.body.error === "COLLECT_FAILED") next = await collect(world);
          expect(next.body).toMatchObject({
            error: "NOTHING_TO_COLLECT",
            lastCollect: { collected: "3.1000", txSignature: expect.any(String) },
          });
          expect(answer.body.message).toContain(next.body.lastCollect.txSignature);
          return answer;
        },
        answer:
          "500 COLLECT_FAILED with the signature; the next caller receives it as `lastCollect`",
        time: "COLLECT_TIMEOUT_MS",
        chain: "collected once",
        env: { COLLECT_TIMEOUT_MS: "1000" },
      },
      {
        fault: "the node cannot find the landed transaction at first",
        run: (world) => {
          world.sandbox.rpc.faults.add({
            when: isMethod("getTransaction"),
            times: 3,
            then: rpcResult(null),
          });
          return collect(world);
        },
        ...collected,
      },
      ...(
        [
          ["was never funded", 0n],
          ["cannot pay the fee", 650_240n + 4_999n],
          ["would fall below its rent-exempt minimum", 650_240n],
        ] as const
      ).map(([fault, lamports]): Fault => ({
        fault: `the fee payer ${fault}`,
        run: (world) => {
          setFeePayer(world, lamports);
          return collect(world);
        },
        answer: "500 INSUFFICIENT_FUNDS",
        ...atOnce,
      })),
      {
        fault: "the hour's fee budget is spent",
        async run(world) {
          expect((await world.collect(world.account("artist001").id)).status).toBe(200);
          return collect(world);
        },
        answer: "500 COLLECT_FAILED, Retry-After until enough of it has flowed in",
        ...atOnce,
        env: { FEE_BUDGET_LAMPORTS_PER_HOUR: "12000" },
      },
    ],
  },
];
