import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { Keypair, Transaction } from "@solana/web3.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { answerJsonRpc } from "../../src/sandbox/rpc/json-rpc.ts";
import { createMethods } from "../../src/sandbox/rpc/methods.ts";
import { startSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { compareWithModel } from "../support/platform-states.ts";

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ slotMs: 0, rpcPort: 0, socialPort: 0 });
});
afterAll(() => sandbox.close());

it.each(["launchpad", "amm"])("the stand-ins are built from their current sources: %s", (name) => {
  const file = (name: string) =>
    readFileSync(new URL(`../../src/sandbox/programs/${name}`, import.meta.url));
  const hash = createHash("sha256")
    .update(file("sbf.h"))
    .update(file(`${name}.c`))
    .digest("hex");
  const isBuilt = file(`${name}.so`).includes(hash);
  expect(isBuilt, "run `npm run sandbox:program` after a change").toBe(true);
});

it.each([5_080, 2_575])(
  "the stand-ins do what the model says at a rent of %i lamports per byte",
  (rate) => {
    compareWithModel(sandbox, rate, 50);
  },
);

it("a transaction that lacks bytes moves nothing, and the chain goes on", () => {
  const { chain } = sandbox;
  const methods = createMethods(chain);
  const feePayer = Keypair.generate().publicKey;
  const transaction = new Transaction({ feePayer, ...chain.latestBlockhash("processed") })
    .add({ keys: [], programId: feePayer, data: Buffer.alloc(9) })
    .serialize({ requireAllSignatures: false });
  const landedCount = chain.ledger().length;
  for (let length = 0; length < transaction.length; length++) {
    const params = [transaction.subarray(0, length).toString("base64")];
    answerJsonRpc(JSON.stringify({ method: "sendTransaction", params }), methods);
  }
  expect(chain.ledger()).toHaveLength(landedCount);
});

it("the network serves the picture of its accounts without a token", async () => {
  const { status, headers } = await fetch(`${sandbox.social.url}/pictures/creator.svg`);
  expect([status, headers.get("content-type")]).toEqual([200, "image/svg+xml"]);
});
