import { afterEach, describe, expect } from "vitest";
import { it, world } from "../support/fixtures.ts";

afterEach(() => {
  world.forgetCalls();
});

const lookedUp = async (handle: string) => (await world.lookup(handle)).body;

describe("GET /wallets", () => {
  it("has the lookup of each account in the order of the query, whether named by handle or id", async () => {
    const [creator, dusty, launcher] = [
      await lookedUp("creator"),
      await lookedUp("dusty"),
      await lookedUp("launcher"),
    ];
    const query = `handle=Creator&socialId=${launcher.socialId}&handle=dusty&socialId=id:${creator.socialId}`;
    const { status, headers, body } = await world.request(`/wallets?${query}`);
    expect([status, headers.get("vary")]).toEqual([200, "Accept"]);
    expect(body).toEqual({ wallets: [creator, launcher, dusty, creator] });
  });

  it("takes `id:` only before an id: other digits would be another account's", async () => {
    const { body } = await world.request("/wallets?socialId=1id:5");
    expect(body.wallets).toMatchObject([{ error: "INVALID_SOCIAL_ID" }]);
  });

  it("ignores other parameters, also by the names of inherited properties", async () => {
    const creator = await lookedUp("creator");
    const query = "constructor=x&handle=creator&__proto__=x&toString=x";
    const { status, body } = await world.request(`/wallets?${query}`);
    expect([status, body]).toEqual([200, { wallets: [creator] }]);
  });

  it("has an error for each account that fails, and the others", async () => {
    const creator = await lookedUp("creator");
    const { status, body } = await world.request(
      "/wallets?handle=@x&handle=creator&socialId=abc&handle=nobodyatall&handle=",
    );
    const failed = (name: object, error: string) => ({
      ...name,
      error,
      message: expect.any(String),
    });
    expect([status, body.wallets]).toEqual([
      200,
      [
        failed({ handle: "@x" }, "INVALID_HANDLE"),
        creator,
        failed({ socialId: "abc" }, "INVALID_SOCIAL_ID"),
        failed({ handle: "nobodyatall" }, "SOCIAL_NOT_FOUND"),
        failed({ handle: "" }, "INVALID_HANDLE"),
      ],
    ]);
  });

  it("has an error for accounts whose balance cannot be read", async () => {
    world.sandbox.rpc.faults.add({ then: "reset" });
    const { body } = await world.request("/wallets?handle=creator");
    expect(body.wallets).toEqual([
      { handle: "creator", error: "LOOKUP_FAILED", message: expect.any(String) },
    ]);
  });

  it("counts as one request, and takes few calls", async () => {
    const names = world.sandbox.accounts
      .filter(({ handle }) => handle.startsWith("artist"))
      .slice(0, 100)
      .map(({ handle }) => `handle=${handle}`);
    const { body, headers } = await world.request(`/wallets?${names.join("&")}`);
    expect(body.wallets).toHaveLength(names.length);
    expect(body.wallets.every((wallet: object) => "balance" in wallet)).toBe(true);
    expect(headers.get("ratelimit")).toMatch(/;r=19;/);
    expect(world.sandbox.social.calls.length).toBeLessThanOrEqual(1);
  });

  it.each([
    ["no account", ""],
    ["more than a hundred", "handle=creator&".repeat(60) + "socialId=1&".repeat(41)],
  ])("of %s is BAD_REQUEST", async (_name, query) => {
    const { status, body } = await world.request(`/wallets?${query}`);
    expect([status, body.error]).toEqual([400, "BAD_REQUEST"]);
    expect(body.message).toContain("1 to 100 accounts");
  });
});

describe("CSV of wallets", () => {
  const COLUMNS =
    "handle,socialId,address,vault,pda,total,withdrawable,vaultLamports,pdaLamports,totalLamports,withdrawableLamports,error";

  it.each([
    ["/wallets.csv", {}],
    ["/wallets.csv", { accept: "application/json" }],
    ["/wallets", { accept: "text/csv" }],
    ["/wallets", { accept: "text/csv, application/json;q=0.5" }],
  ])("is the answer of %s to %j", async (path, headers: Record<string, string>) => {
    const { socialId, address } = await lookedUp("creator");
    const answer = await world.request(`${path}?handle=creator&handle=nobodyatall`, { headers });
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(answer.body.split("\r\n")).toEqual([
      COLUMNS,
      `creator,id:${socialId},${address},3.1000,5.2000,8.3000,8.1340,3100000000,5200000000,8300000000,8134000000,`,
      "nobodyatall,,,,,,,,,,,SOCIAL_NOT_FOUND",
      "",
    ]);
  });

  it.each([{}, { accept: "*/*" }, { accept: "application/json, text/csv;q=0.5" }])(
    "is not the answer to %j",
    async (headers: Record<string, string>) => {
      const answer = await world.request("/wallets?handle=creator", { headers });
      expect(answer.headers.get("content-type")).toMatch("application/json");
    },
  );

  it("has no text that a spreadsheet would run, and no profile", async () => {
    const texts = ['=HYPERLINK("https://evil.example")', "+1", "-1", "@x", "a,b", 'a"b', "a\nb"];
    const query = texts.map((text) => `handle=${encodeURIComponent(text)}`).join("&");
    const { body } = await world.request(`/wallets.csv?${query}&socialId=%3D1&socialId=id:id:1`);
    const rows = body.split("\r\n").slice(1, -1);
    expect(rows).toEqual([
      ...texts.map(() => ",,,,,,,,,,,INVALID_HANDLE"),
      ...Array(2).fill(",,,,,,,,,,,INVALID_SOCIAL_ID"),
    ]);
  });

  it("has an error of the whole request as JSON", async () => {
    const { status, body } = await world.request("/wallets.csv");
    expect([status, body.error]).toEqual([400, "BAD_REQUEST"]);
  });
});
