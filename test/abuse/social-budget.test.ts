import { describe, expect } from "vitest";
import { atOnce, from, type Answer } from "../support/client.ts";
import { withNewWorld, world } from "../support/fixtures.ts";

/** 24 reads at once, of which a block gets six; one flows in every 30 seconds. */
const it = withNewWorld({ SOCIAL_READS_PER_HOUR: "144" });
const handle = (i: number) => `artist${String(i + 1).padStart(3, "0")}`;
const passed = (answers: readonly Answer[]) =>
  answers.filter(({ status }) => status === 200).length;
/** An address of another block than any other `i`. */
const blockOf = (i: number) => from(`198.18.${i}.1`);

describe("a lookup beyond the budget", () => {
  const SHARE_USED = expect.stringMatching(
    /^You have used your share .* Try again in \d+ seconds\. Handles and ids that are cached still work\.$/,
  );
  const BUDGET_USED = expect.stringMatching(
    /^The service has used its budget .* Try again in [123]?\d seconds\. Handles and ids that are cached still work\.$/,
  );

  it("is SERVICE_BUSY, and says whether the caller has used its share or the service its budget", async () => {
    const asked = await atOnce(8, (i) => world.lookup(handle(i), from(`192.0.2.${i}`)));
    expect(passed(asked)).toBe(6);
    const { status, body, headers } = asked.find((answer) => answer.status !== 200)!;
    expect(status).toBe(503);
    expect(body).toEqual({ error: "SERVICE_BUSY", message: SHARE_USED });
    expect(body.message).toContain(` in ${headers.get("retry-after")} seconds.`);

    await atOnce(18, (i) => world.lookup(handle(10 + i), blockOf(i)));
    const { body: late, headers: lateHeaders } = await world.lookup(handle(50), blockOf(50));
    expect(late).toEqual({ error: "SERVICE_BUSY", message: BUDGET_USED });
    expect(late.message).toContain(` in ${lateHeaders.get("retry-after")} seconds.`);
    expect(world.sandbox.social.calls.flatMap(({ names }) => names)).toHaveLength(24);
  });

  it("fails its field in GraphQL with the scope, and the fields within the budget resolve", async () => {
    const { status, body } = await world.graphql(
      "query ($handles: [String!]!) { wallets(handles: $handles) { handle } }",
      { handles: Array.from({ length: 8 }, (_, i) => handle(i)) },
    );
    expect([status, body.data.wallets.filter(Boolean)]).toEqual([
      200,
      expect.objectContaining({ length: 6 }),
    ]);
    expect(body.errors).toHaveLength(2);
    expect(body.errors[0]).toMatchObject({
      message: SHARE_USED,
      path: ["wallets", 6],
      extensions: { code: "SERVICE_BUSY", scope: "CALLER" },
    });
    const { message, extensions } = body.errors[0];
    expect(message).toContain(` in ${extensions.retryAfterSeconds} seconds.`);
  });
});
