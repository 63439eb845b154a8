import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeWithBrowser, type WatchedPage } from "../support/describe-with-browser.ts";
import { violationsOn } from "../support/violations.ts";
import { startWorld, type World } from "../support/world.ts";

const VIEWS = [
  { width: 1280, height: 900, colorScheme: "light" },
  { width: 390, height: 844, colorScheme: "dark" },
] as const;

/**
 * The violations that axe calls serious or critical. Swagger UI's headings and landmarks have
 * moderate ones.
 */
const seriousViolations = async (page: WatchedPage) =>
  (await violationsOn(page)).filter(({ impact }) => impact === "serious" || impact === "critical");

async function setView(page: WatchedPage, { width, height, colorScheme }: (typeof VIEWS)[number]) {
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme });
}

/** How far the page is higher and wider than the window. */
const overflowOf = (page: WatchedPage) =>
  page.evaluate(() => {
    const { scrollHeight, scrollWidth } = document.scrollingElement!;
    return { height: scrollHeight - innerHeight, width: scrollWidth - innerWidth };
  });

describeWithBrowser("the pages for programs", (visit) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld({ BASE_PATH: "/some/base" });
  });
  afterAll(() => world.close());

  describe("the API reference", () => {
    const open = (page: WatchedPage, path: string) =>
      page.locator(".opblock-summary-control", { hasText: path }).click();

    /** Opens both operations and looks up an account, so that the page shows all it can. */
    async function openAll(): Promise<WatchedPage> {
      const page = await visit(`${world.url}/docs`);
      await open(page, "/wallet/lookup");
      await open(page, "/collect");
      await page.getByPlaceholder("handle").fill("creator");
      await page.getByRole("button", { name: "Execute" }).first().click();
      await page.locator(".live-responses-table").waitFor();
      return page;
    }

    it("sends requests to its own origin, also if PUBLIC_URL is another", async () => {
      const published = await startWorld({ PUBLIC_URL: "https://tributary.example" });
      try {
        const page = await visit(`${published.url}/docs`);
        await open(page, "/wallet/lookup");
        await page.getByPlaceholder("handle").fill("creator");
        await page.getByRole("button", { name: "Execute" }).first().click();
        const answer = page.locator(".live-responses-table .response").first();
        await answer.getByText(published.account("creator").address).waitFor();
        expect(page.offences).toEqual([]);
      } finally {
        await published.close();
      }
    });

    it("has no serious violation that axe finds, and fits phones, in light and dark", async () => {
      const page = await openAll();
      for (const view of VIEWS) {
        await setView(page, view);
        expect([view, await seriousViolations(page)]).toEqual([view, []]);
        expect([view, (await overflowOf(page)).width]).toEqual([view, 0]);
      }
      expect(page.offences).toEqual([]);
    });
  });

  it.each(["/docs", "/graphql"])(
    "%s says when to come back while the rate limit is used up, and loads again then",
    async (path) => {
      const page = await visit(`${world.url}/livez`);
      const caller = { "x-forwarded-for": path === "/docs" ? "192.0.2.1" : "192.0.2.2" };
      await page.setExtraHTTPHeaders(caller);
      while ((await world.lookup("creator", caller)).status === 200);
      await page.clock.install();
      await page.goto(world.url + path);
      await page.getByRole("heading", { name: "Too many requests" }).waitFor();
      await page.getByText(/This page opens in [1-6]?\d s\./).waitFor();
      expect(await violationsOn(page)).toEqual([]);
      for (const view of VIEWS) {
        await setView(page, view);
        expect((await overflowOf(page)).width).toBeLessThanOrEqual(0);
      }
      const reloaded = page.waitForEvent("domcontentloaded");
      await page.clock.fastForward(61_000);
      await reloaded;
      // What the browser itself reports of a refused file.
      const isRefusal = /^(Failed to load resource|Refused to (execute script|apply style))/;
      expect(page.offences.filter((text) => !isRefusal.test(text))).toEqual([]);
    },
  );

  it("GraphiQL fits the window", async () => {
    const page = await visit(`${world.url}/graphql`);
    for (const view of VIEWS) {
      await setView(page, view);
      // The editor draws its lines after the page has loaded.
      await page.locator(".monaco-editor .view-line").nth(5).waitFor({ state: "attached" });
      const { height, width } = await overflowOf(page);
      expect([view, height <= 0, width <= 0]).toEqual([view, true, true]);
    }
    // On a phone, the operation has most of the window until there is a response.
    const editors = (await page.locator(".graphiql-editors").boundingBox())!;
    expect(editors.height).toBeGreaterThan(VIEWS[1].height * 0.6);
    expect(editors.width).toBeGreaterThan(VIEWS[1].width * 0.8);
    expect(page.offences).toEqual([]);
  });
});
