import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeWithBrowser } from "../support/describe-with-browser.ts";
import { startWorld, type World } from "../support/world.ts";

const SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{80,90}$/;
const REFUSED = /^Failed to load resource: the server responded with a status of 4/;

describeWithBrowser("in a browser", (visit) => {
  describe.each(["", "/some/base"])("with the base path %j", (basePath) => {
    let world: World;
    beforeAll(async () => {
      world = await startWorld({ BASE_PATH: basePath });
    });
    afterAll(() => world.close());

    it("the first page looks up a handle and collects its fees by keyboard alone", async () => {
      const page = await visit(world.url);
      await page.getByText("This is a sandbox: no real money.").waitFor();
      await page.getByLabel("Handle").fill("@creator");
      await page.keyboard.press("Enter");
      const wallet = page.getByRole("region", { name: "creator" });
      await wallet.getByText("3.1000 SOL").waitFor();
      expect(await wallet.innerText()).toContain(world.account("creator").address);

      await wallet.getByRole("button", { name: "Collect" }).focus();
      await page.keyboard.press("Enter");
      await page.getByText("Collected 3.1000 SOL for creator").waitFor();
      const signature = await page.getByText("Transaction").locator("code").innerText();
      expect(signature).toMatch(SIGNATURE);
      expect(world.sandbox.chain.landed(signature)?.err).toBeNull();
      await wallet.getByText("0.0000 SOL").waitFor();
      expect(page.offences).toEqual([]);
    });

    it("the first page shows the API's error messages", async () => {
      const page = await visit(world.url);
      await page.getByRole("link", { name: "suspended" }).click();
      await page
        .getByRole("status")
        .getByText((await world.lookup("suspended")).body.message)
        .waitFor();
      await page.getByRole("link", { name: "dusty" }).click();
      await page.getByRole("region", { name: "dusty" }).getByRole("button", { name: "Collect" }).click();
      const { message } = (await world.collect(world.account("dusty").id)).body;
      await page.getByRole("status").getByText(message).waitFor();
      expect(page.offences.filter((offence) => !REFUSED.test(offence))).toEqual([]);
    });

    it("the API reference sends a request", async () => {
      const page = await visit(`${world.url}/docs`);
      const lookup = page.locator(".opblock-get", { hasText: "/wallet/lookup" });
      await lookup.getByRole("button", { name: "/wallet/lookup" }).first().click();
      await lookup.getByPlaceholder("handle").fill("creator");
      await lookup.getByRole("button", { name: "Execute" }).click();
      const answer = lookup.locator(".live-responses-table .response").first();
      await answer.getByText(world.account("creator").address).waitFor();
      expect(await answer.locator(".response-col_status").innerText()).toBe("200");
      expect(page.offences).toEqual([]);
    });

    it("GraphiQL runs each of its examples", async () => {
      const page = await visit(`${world.url}/graphql`);
      for (const [operation, shown] of [
        ["OneWallet", world.account("creator").address],
        ["ManyWallets", '"newcomer"'],
        ["NamedWallets", '"theirs"'],
        ["Collect", '"txSignature"'],
      ] as const) {
        await page.getByRole("button", { name: /^Execute query/ }).click();
        await page.getByRole("menuitem", { name: operation }).click();
        await page.locator(".result-window").getByText(shown).waitFor();
      }
      expect(page.offences).toEqual([]);
    });
  });

  it("the first page shows how long to wait after a rate limit", async () => {
    const world = await startWorld({ RATE_LIMIT_MAX: "1" });
    try {
      const page = await visit(world.url);
      await page.getByRole("link", { name: "creator" }).click();
      await page.getByRole("region", { name: "creator" }).waitFor();
      await page.getByRole("link", { name: "dusty" }).click();
      await page
        .getByRole("status")
        .getByText(/Try again in \d+ seconds\.$/)
        .waitFor();
    } finally {
      await world.close();
    }
  });
});
