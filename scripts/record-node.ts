/**
 * Records what a node answers to this service's requests, for test/node/same-answers.test.ts:
 *
 *     node scripts/record-node.ts <url>
 *
 * Waits until a blockhash has expired. The node must give lamports to anyone, as local nodes do.
 */
import { writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, askAll } from "../test/node/questions.ts";

const [url = "http://127.0.0.1:8899"] = process.argv.slice(2);
const file = new URL("../test/node/recorded-answers.json", import.meta.url);

const call = async (method: string, ...params: unknown[]): Promise<unknown> =>
  (await ask(url, method, ...params)).result;

async function finalize(signature: string): Promise<void> {
  for (;;) {
    const { value } = (await call("getSignatureStatuses", [signature])) as {
      value: ({ confirmationStatus: string } | null)[];
    };
    if (value[0]?.confirmationStatus === "finalized") return;
    await sleep(100);
  }
}

const node = await call("getVersion");
const answers = await askAll({
  url,
  hasLookupTables: true,
  finalize,
  async fund(address, lamports) {
    await finalize((await call("requestAirdrop", address, lamports)) as string);
  },
  async pass(blockHeight) {
    const isPassed = async () =>
      ((await call("getEpochInfo")) as { blockHeight: number }).blockHeight > blockHeight;
    while (!(await isPassed())) await sleep(1_000);
  },
});
writeFileSync(file, `${JSON.stringify({ node, answers }, null, 1)}\n`);
