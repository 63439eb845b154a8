import { expect, onTestFinished } from "vitest";
import { openEventStream } from "../support/event-stream.ts";
import { eventually } from "../support/eventually.ts";
import { withWorld, world } from "../support/fixtures.ts";

const it = withWorld({ RATE_LIMIT_MAX: "1000000" });

/** The body of a request whose document has about as many tokens as one may have. */
function largeBody(operation: string, i: number) {
  const fields = "id handle socialId address __typename";
  const wallets = Array.from(
    { length: 390 },
    (_, j) => `w${j}: walletById(socialId: "7") { ${fields} }`,
  );
  const query = `${operation} query Other${i} { ${wallets.join(" ")} }`;
  return { query, operationName: "Run" };
}

it("a block's open streams hold at most an eighth of the memory for documents", async () => {
  const open = (i: number, address: string) =>
    openEventStream(
      world.url,
      largeBody('subscription Run { walletById(socialId: "7") { id } }', i),
      { address },
    );
  const streams = await Promise.all([1, 2, 3].map((i) => open(i, `192.0.2.${i}`)));
  onTestFinished(() => {
    for (const { close } of streams) close();
  });
  expect(streams.map(({ status }) => status).toSorted()).toEqual([200, 200, 429]);
  const refused = streams.find(({ status }) => status === 429)!;
  await eventually(() => {
    expect(JSON.parse(refused.text()).errors[0]).toMatchObject({
      message: expect.stringContaining("Too many GraphQL documents are in use."),
      extensions: { code: "RATE_LIMITED", scope: "CALLER" },
    });
  });
  const ofOthers = await open(4, "198.51.100.1");
  streams.push(ofOthers);
  expect(ofOthers.status).toBe(200);

  streams.find(({ status }) => status === 200)!.close();
  await eventually(async () => {
    const again = await open(5, "192.0.2.9");
    again.close();
    expect(again.status).toBe(200);
  });
});
