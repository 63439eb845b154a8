import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { describeWithBrowser } from "../support/describe-with-browser.ts";
import { violationsOn } from "../support/violations.ts";
import { startWorld, type World } from "../support/world.ts";

describeWithBrowser("the pages for programs, below a base path,", (visit) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld({ BASE_PATH: "/some/base" });
  });
  afterAll(() => world.close());

  /** Opens the lookup of the API reference. */
  async function openLookup(url = world.url) {
    const page = await visit(`${url}/docs`);
    const lookup = page.locator(".opblock-get", { hasText: "/wallet/lookup" });
    await lookup.locator(".opblock-summary-control").press("Enter");
    const execute = lookup.getByRole("button", { name: "Execute" });
    return {
      ...{ page, lookup, execute },
      answer: lookup.locator(".live-responses-table .response").first(),
      async send(handle: string) {
        await lookup.getByPlaceholder("handle").fill(handle);
        await execute.focus();
        await page.keyboard.press("Enter");
      },
    };
  }

  it("send a lookup by keyboard", async () => {
    const { page, lookup, execute, answer, send } = await openLookup();
    const hasFocus = () => execute.evaluate((button) => button.matches(":focus"));
    await send("creator");
    await answer.getByText(world.account("creator").address).waitFor();
    expect(await answer.locator(".response-col_status").innerText()).toBe("200");
    expect(await hasFocus()).toBe(true);
    await send("not a handle");
    await lookup.getByText("Please correct the following").waitFor();
    expect([await answer.count(), await hasFocus()]).toEqual([0, true]);
    expect(page.offences).toEqual([]);
  });

  it("send requests to their own origin, also if PUBLIC_URL is another", async () => {
    const published = await startWorld({ PUBLIC_URL: "https://tributary.example" });
    onTestFinished(() => published.close());
    const { page, answer, send } = await openLookup(published.url);
    await send("creator");
    await answer.getByText(published.account("creator").address).waitFor();
    expect(page.offences).toEqual([]);
  });

  it.each([
    ["light", 1280],
    ["dark", 390],
  ] as const)(
    "have no serious violation that axe finds, in %s mode at %i pixels",
    async (colorScheme, width) => {
      const { page, answer, send } = await openLookup();
      await page.locator(".opblock-summary-control", { hasText: "/collect" }).click();
      await send("creator");
      await answer.waitFor();
      await page.setViewportSize({ width, height: 844 });
      await page.emulateMedia({ colorScheme });
      // Swagger UI's headings and landmarks have moderate ones.
      const serious = (await violationsOn(page)).filter(({ impact }) =>
        ["serious", "critical"].includes(String(impact)),
      );
      expect(serious).toEqual([]);
      expect(await page.evaluate("document.scrollingElement.scrollWidth")).toBe(width);
      expect(page.offences).toEqual([]);
    },
  );

  it("have GraphiQL with its documentation on demand, which runs its examples", async () => {
    const page = await visit(`${world.url}/graphql`);
    const run = page.getByRole("button", { name: /^Execute query/ });
    await run.waitFor();
    await page.getByRole("button", { name: "Show Documentation Explorer" }).click();
    await page.getByText("requests from one IP address are limited").waitFor();
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

  it("say when to come back while the rate limit is used up, and load again then", async () => {
    const page = await visit(`${world.url}/livez`);
    const caller = { "x-forwarded-for": "192.0.2.1" };
    await page.setExtraHTTPHeaders(caller);
    while ((await world.lookup("creator", caller)).status === 200);
    await page.clock.install();
    await page.goto(`${world.url}/graphql`);
    await page.getByRole("heading", { name: "Too many requests" }).waitFor();
    await page.getByText(/This page opens in [1-6]?\d s\./).waitFor();
    expect(await violationsOn(page)).toEqual([]);
    const reloaded = page.waitForEvent("domcontentloaded");
    await page.clock.fastForward(61_000);
    await reloaded;
  });
});
