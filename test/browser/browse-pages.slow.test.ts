import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeWithBrowser } from "../support/describe-with-browser.ts";
import { eventually } from "../support/eventually.ts";
import { startWorld, type World } from "../support/world.ts";

describeWithBrowser("in a browser", (visit) => {
  describe.each(["", "/some/base"])("with the base path %j", (basePath) => {
    let world: World;
    beforeAll(async () => {
      world = await startWorld({ BASE_PATH: basePath });
    });
    afterAll(() => world.close());

    it("the API reference has both endpoints in sight, and sends a lookup by keyboard", async () => {
      const page = await visit(`${world.url}/docs`);
      const lookup = page.locator(".opblock-get", { hasText: "/wallet/lookup" });
      const examples = [
        `curl '${world.url}/wallet/lookup?handle=creator'`,
        `curl '${world.url}/collect' -d '{"socialId":"1523400000000000123"}'`,
      ];
      for (const example of examples) {
        const box = await page.getByText(example, { exact: true }).boundingBox();
        expect(box!.y + box!.height).toBeLessThan(page.viewportSize()!.height);
      }
      await lookup.locator(".opblock-summary-control").press("Enter");
      const [handle, execute] = [
        lookup.getByPlaceholder("handle"),
        lookup.getByRole("button", { name: "Execute" }),
      ];
      for (const viewport of [page.viewportSize()!, { width: 390, height: 844 }]) {
        await page.setViewportSize(viewport);
        for (const element of [handle, execute]) {
          const { y, height } = (await element.boundingBox())!;
          expect([viewport, y + height <= viewport.height]).toEqual([viewport, true]);
        }
      }
      await handle.fill("creator");
      const hasFocus = () => execute.evaluate((button) => button.matches(":focus"));
      await execute.focus();
      await page.keyboard.press("Enter");
      const answer = lookup.locator(".live-responses-table .response").first();
      const address = answer.getByText(world.account("creator").address);
      await address.waitFor();
      expect(await answer.locator(".response-col_status").innerText()).toBe("200");
      expect(await hasFocus()).toBe(true);
      await eventually(async () => {
        // The answer, from its top if it is longer than the page.
        const { y, height } = (await address.boundingBox())!;
        const most = page.viewportSize()!.height;
        expect(y + Math.min(height, most)).toBeLessThanOrEqual(most);
      });

      await lookup.getByRole("button", { name: "Clear" }).press("Enter");
      expect([await answer.count(), await hasFocus()]).toEqual([0, true]);
      await page.keyboard.press("Enter");
      await address.waitFor();
      await handle.fill("not a handle");
      await execute.focus();
      await page.keyboard.press("Enter");
      await lookup.getByText("Please correct the following").waitFor();
      expect([await answer.count(), await hasFocus()]).toEqual([0, true]);
      expect(page.offences).toEqual([]);
    });

    it("GraphiQL has its documentation on demand, few stops before the operation, and runs its examples", async () => {
      const page = await visit(`${world.url}/graphql`);
      const run = page.getByRole("button", { name: /^Execute query/ });
      await run.waitFor();
      let stops = 0;
      do await page.keyboard.press("Tab");
      while (++stops < 50 && !(await run.evaluate((button) => button.matches(":focus"))));
      expect(stops).toBeLessThan(15);
      await page.getByRole("button", { name: "Show Documentation Explorer" }).click();
      await page.getByText("requests from one IP address are limited").waitFor();
      expect(await page.getByRole("link", { name: "REST" }).first().getAttribute("href")).toBe(
        "docs",
      );
      expect(await page.getByRole("button", { name: "Headers" }).count()).toBe(0);
      for (const [name, shown] of [
        ["Wallet", '"withdrawable"'],
        ["Wallets", '"newcomer"'],
        ["Coins", '"collectable"'],
        ["Collect", '"txSignature"'],
        ["Live", '"pda"'],
      ] as const) {
        await run.click();
        await page.getByRole("menuitem", { name, exact: true }).click();
        await page.locator(".result-window").getByText(shown).first().waitFor();
      }
      expect(page.offences).toEqual([]);
    });
  });
});
