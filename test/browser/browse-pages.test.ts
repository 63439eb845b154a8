import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeWithBrowser } from "../support/describe-with-browser.ts";
import { startWorld, type World } from "../support/world.ts";

describeWithBrowser("in a browser", (visit) => {
  describe.each(["", "/some/base"])("with the base path %j", (basePath) => {
    let world: World;
    beforeAll(async () => {
      world = await startWorld({ BASE_PATH: basePath });
    });
    afterAll(() => world.close());

    it("the API reference opens with an example of a lookup in sight, and sends a request", async () => {
      const page = await visit(`${world.url}/docs`);
      const lookup = page.locator(".opblock-get", { hasText: "/wallet/lookup" });
      const example = `curl '${world.url}/wallet/lookup?handle=creator'`;
      const box = await lookup.getByText(example, { exact: true }).boundingBox();
      expect(box!.y + box!.height).toBeLessThan(page.viewportSize()!.height);
      expect(page.url()).toBe(`${world.url}/docs`);
      await lookup.getByPlaceholder("handle").fill("creator");
      await lookup.getByRole("button", { name: "Execute" }).click();
      const answer = lookup.locator(".live-responses-table .response").first();
      await answer.getByText(world.account("creator").address).waitFor();
      expect(await answer.locator(".response-col_status").innerText()).toBe("200");
      expect(page.offences).toEqual([]);
    });

    it("GraphiQL opens with the documentation, and runs each of its examples", async () => {
      const page = await visit(`${world.url}/graphql`);
      await page.getByText("requests from one IP address are limited").waitFor();
      expect(await page.getByRole("link", { name: "REST" }).first().getAttribute("href")).toBe("docs");
      expect(await page.getByRole("button", { name: "Headers" }).count()).toBe(0);
      for (const [name, shown] of [
        ["Wallet", '"withdrawable"'],
        ["Wallets", '"newcomer"'],
        ["Coins", '"collectable"'],
        ["History", '"nodes"'],
        ["Collect", '"txSignature"'],
        ["CollectMany", '"NOTHING_TO_COLLECT"'],
        ["Live", '"pda"'],
      ] as const) {
        await page.getByRole("button", { name: /^Execute query/ }).click();
        await page.getByRole("menuitem", { name, exact: true }).click();
        await page.locator(".result-window").getByText(shown).first().waitFor();
      }
      expect(page.offences).toEqual([]);
    });
  });
});
