import { parseEnv } from "node:util";
import { expect, it } from "vitest";
import { createClient } from "../support/client.ts";
import { runMain, startProgram } from "../support/program.ts";
import { AMPLE_DEADLINES } from "../support/world.ts";

it("npm run sandbox prints the variables with which a production service looks up and collects", async () => {
  const sandbox = startProgram({}, undefined, ["sandbox", "--chain-port=0", "--social-port=0"]);
  await expect.poll(sandbox.output).toContain("Ctrl-C");
  const lines = sandbox.output().match(/^[A-Z_]+=.*$/gm)!;
  const variables = parseEnv(lines.join("\n")) as Record<string, string>;
  const service = runMain({ ...variables, ...AMPLE_DEADLINES, PORT: "0" });
  const client = createClient(await service.address(/"url":"(http[^"]+)"/));

  const { body: wallet } = await client.lookup("creator");
  expect(wallet.balance.vault).toBe("3.1000");
  expect((await client.collect(wallet.socialId)).body).toMatchObject({
    success: true,
    collected: "3.1000",
  });
  expect(service.output()).not.toMatch(/"level":[56]0/);

  sandbox.child.kill("SIGTERM");
  expect(await sandbox.exitCode()).toBe(0);
});
