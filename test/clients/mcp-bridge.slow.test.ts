import { createInterface } from "node:readline";
import { expect, onTestFinished } from "vitest";
import example from "../../examples/mcp.json" with { type: "json" };
import manifest from "../../package.json" with { type: "json" };
import { spawnNode } from "../support/program.ts";
import { chain, it, world } from "../support/fixtures.ts";

const BRIDGE = new URL("../../node_modules/mcp-graphql/dist/index.js", import.meta.url).pathname;
const { args, env } = example.mcpServers.tributary;

interface ToolResult {
  readonly isError?: boolean;
  readonly content: readonly [{ readonly text: string }];
}

/**
 * Starts the bridge as examples/mcp.json does, and speaks MCP with it: lines of JSON-RPC on
 * standard input and output.
 */
async function connect(overrides: Readonly<Record<string, string>>) {
  const { child, output } = spawnNode([BRIDGE], {
    ...env,
    ENDPOINT: `${world.url}/graphql`,
    ...overrides,
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const answers = new Map<number, (answer: { result: unknown }) => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const answer = JSON.parse(line) as { id: number; result: unknown };
    answers.get(answer.id)?.(answer);
  });
  const send = (message: object) =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

  let lastId = 0;
  async function request<T>(method: string, params: object = {}): Promise<T> {
    const id = ++lastId;
    const { promise, resolve, reject } = Promise.withResolvers<{ result: unknown }>();
    answers.set(id, resolve);
    child.once("exit", () => {
      reject(new Error(`the bridge has ended: ${output()}`));
    });
    send({ id, method, params });
    return (await promise).result as T;
  }

  await request("initialize", {
    protocolVersion: "2025-03-26",
    capabilities: {},
    clientInfo: { name: "test", version: "1" },
  });
  send({ method: "notifications/initialized" });
  return async (query: string) => {
    const call = { name: "query-graphql", arguments: { query } };
    const { isError = false, content } = await request<ToolResult>("tools/call", call);
    return { isError, text: content[0].text };
  };
}

it("an agent behind the bridge of examples/mcp.json looks up a handle, and collects once mutations are allowed", async () => {
  expect(args.at(-1)).toBe(`mcp-graphql@${manifest.devDependencies["mcp-graphql"]}`);
  const query = await connect({ ALLOW_MUTATIONS: "true" });
  const lookup = await query(
    `{ wallet(handle: "creator") { socialId address balance { vault } } }`,
  );
  const { id, address } = world.account("creator");
  expect(JSON.parse(lookup.text)).toEqual({
    data: { wallet: { socialId: id, address, balance: { vault: "3.1000" } } },
  });
  const collect = await query(
    `mutation { collect(socialId: "${id}") { success collected txSignature } }`,
  );
  const { data } = JSON.parse(collect.text) as { data: { collect: { txSignature: string } } };
  expect(data.collect).toMatchObject({ success: true, collected: "3.1000" });
  expect(chain.landed(data.collect.txSignature)?.err).toBeNull();

  const unknown = await query(`{ wallet(handle: "nobodyatall") { address } }`);
  expect(unknown).toEqual({ isError: true, text: expect.stringContaining("SOCIAL_NOT_FOUND") });
});
