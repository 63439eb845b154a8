import { getBase58Decoder } from "@solana/codecs-strings";
import { expect } from "vitest";
import { startProgram } from "../support/program.ts";
import { sandbox, withNewSandbox } from "../support/fixtures.ts";

const it = withNewSandbox();

it("secrets appear in no log, metric or response, whatever fails", async () => {
  const rpcUrl = new URL(sandbox.env.SOLANA_RPC_URL);
  rpcUrl.username = "a-user";
  rpcUrl.password = "a-secret-password";
  rpcUrl.pathname = "/a-secret-path";
  rpcUrl.search = "?api-key=a-secret-query";
  const secretKey = Buffer.from(JSON.parse(sandbox.env.FEE_PAYER_KEYPAIR) as number[]);
  const program = startProgram({
    ...sandbox.env,
    SOLANA_RPC_URL: rpcUrl.href,
    REDIS_URL: "redis://:a-secret-of-redis@127.0.0.1:1",
    RPC_TIMEOUT_MS: "200",
    SOCIAL_TIMEOUT_MS: "200",
    LOG_LEVEL: "trace",
    PORT: "0",
  });
  const url = await program.address(/"url":"(http[^"]+)"/);
  const { id } = sandbox.account("creator");

  const answers: string[] = [];
  const ask = async (path: string, init?: RequestInit) => {
    answers.push(await (await fetch(url + path, init)).text());
  };
  const failures = [
    "reset",
    "hang",
    "cut",
    { status: 500, body: "" },
    { status: 401, body: "{}" },
  ] as const;
  for (const then of [...failures, { status: 200, body: "no JSON" }]) {
    const lifts = [sandbox.rpc.faults.add({ then }), sandbox.social.faults.add({ then })];
    await ask(`/wallet/lookup?handle=artist00${answers.length % 10}`);
    await ask("/collect", { method: "POST", body: JSON.stringify({ socialId: id }) });
    for (const lift of lifts) lift();
  }
  await expect
    .poll(async () => {
      await ask("/collect", { method: "POST", body: JSON.stringify({ socialId: id }) });
      return answers.at(-1);
    })
    .toContain('"success":true');
  await ask("/metrics");
  await ask("/readyz");

  const exposed = answers.join("\n") + program.output();
  expect(program.output()).toMatch(/Redis/);
  for (const secret of [
    /a-secret/,
    /a-user/,
    new RegExp(sandbox.env.SOCIAL_API_TOKEN),
    new RegExp(Buffer.from("a-user:a-secret-password").toString("base64")),
    new RegExp([...secretKey.subarray(0, 8)].join(", ?")),
    new RegExp(secretKey.subarray(0, 32).toString("base64url")),
    new RegExp(secretKey.toString("hex").slice(0, 32)),
    new RegExp(getBase58Decoder().decode(secretKey)),
  ]) {
    expect(exposed).not.toMatch(secret);
  }
});
