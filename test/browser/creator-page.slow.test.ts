import { PublicKey } from "@solana/web3.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeWithBrowser, type WatchedPage } from "../support/describe-with-browser.ts";
import { violationsOn } from "../support/violations.ts";
import { startWorld, type World } from "../support/world.ts";

const REFUSED = /^Failed to load resource: /;
/** More requests than the tests of a gateway make. */
const NO_LIMIT = { RATE_LIMIT_MAX: "100000" };

/** What the page of an account shows. */
function partsOf(page: WatchedPage) {
  const card = page.locator("#creator > section").first();
  return {
    card,
    name: card.getByRole("heading", { level: 1 }),
    amount: (label: string) =>
      card.locator(".figures > div", { hasText: label }).locator("dd").first(),
    collect: page.locator("#collect"),
    outcome: page.locator("#outcome"),
    history: page.getByRole("region", { name: "What arrived" }),
    coins: page.getByRole("region", { name: "Coins" }),
  };
}

/** Scrolls to the history, without which the page does not read it. */
const scrollToHistory = (page: WatchedPage) => page.locator("#history").scrollIntoViewIfNeeded();

/** Waits until the page shows an account, with its history, and is connected. */
async function waitForAll(page: WatchedPage): Promise<void> {
  await page.getByText("Live").waitFor();
  await scrollToHistory(page);
  await page.locator("#history :is(.rows, .hint)").first().waitFor();
}

const consoleErrors = (page: WatchedPage) =>
  page.offences.filter((offence) => !REFUSED.test(offence));

describeWithBrowser("the page of a creator", (visit) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld({ ...NO_LIMIT, BASE_PATH: "/some/base" });
  });
  afterAll(() => world.close());

  it("opens by keyboard alone, collects inside the card, and shows the transfer", async () => {
    const page = await visit(`${world.url}/`);
    await page.getByLabel("Handle").fill("@creator");
    await page.keyboard.press("Enter");
    const { card, name, amount, collect, outcome, history } = partsOf(page);
    await amount("Waiting").getByText("3.1000").waitFor();
    expect(await amount("At the address").innerText()).toBe("5.2000 SOL");
    expect(await amount("Withdrawable").innerText()).toBe("8.1340 SOL");
    expect(await name.innerText()).toBe("The Creator");
    await name.getByRole("img", { name: "Verified" }).waitFor();
    expect(await card.innerText()).toContain(world.account("creator").address);
    expect(page.url()).toBe(`${world.url}/?handle=creator`);
    await scrollToHistory(page);
    await history.getByText("Nothing has arrived").waitFor();

    await collect.focus();
    await page.keyboard.press("Enter");
    await outcome.getByText("Collected 3.1000 SOL").waitFor();
    expect(await card.locator("#outcome").count()).toBe(1);
    const signature = (await outcome.locator("code").getAttribute("title"))!;
    expect(world.sandbox.chain.landed(signature)?.err).toBeNull();
    await history.getByText("+3.1000 SOL").waitFor();
    await page.getByRole("button", { name: "Nothing to collect yet", disabled: true }).waitFor();
    // A disabled button has no focus.
    await expect.poll(() => outcome.evaluate((element) => element.matches(":focus"))).toBe(true);
    expect(page.offences).toEqual([]);
  });

  it("shows what the address is derived from, and a command that derives it", async () => {
    const { id, address } = world.account("graduate");
    const page = await visit(`${world.url}/?handle=graduate`);
    await page.getByText("Live").waitFor();
    await page.getByText("Check this address").click();
    const textOf = (element: string) => page.locator(element).innerText();
    const program = await textOf("#program");
    const seeds = [await textOf("#first-seed"), await textOf("#second-seed")];
    expect(seeds[1]).toBe(id);
    const [derived, bump] = PublicKey.findProgramAddressSync(
      seeds.map((seed) => Buffer.from(seed)),
      new PublicKey(program),
    );
    expect([derived.toBase58(), String(bump)]).toEqual([address, await textOf("#bump")]);
    expect(await textOf("#derive")).toBe(
      `solana find-program-derived-address ${program} string:${seeds.join(" string:")}`,
    );
    expect(await violationsOn(page)).toEqual([]);
  });

  it("adds and removes a coin, and explains one that never pays the address", async () => {
    const { coins } = world.account("variety");
    const [pays, , , holders] = coins.map(({ mint }) => mint);
    const page = await visit(`${world.url}/?handle=variety`);
    await waitForAll(page);
    const { amount, coins: list } = partsOf(page);
    const input = page.getByLabel("Count the fees that wait on a coin");
    await input.fill("no mint");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("There is no mint in this.").waitFor();

    await input.fill(`https://launch.example/coin/${pays}?tab=chart`);
    await page.keyboard.press("Enter");
    await list.getByText("Counts in what waits.").waitFor();
    await amount("Waiting").getByText("0.8500").waitFor();
    await input.fill(holders!);
    await page.keyboard.press("Enter");
    await list.getByText("Never pays this address. Its creator fees go to its holders.").waitFor();
    expect(new URL(page.url()).searchParams.getAll("mint")).toEqual([pays, holders]);

    await list
      .getByRole("button", { name: /^Remove coin/ })
      .first()
      .click();
    await amount("Waiting").getByText("0.4000").waitFor();
    expect(new URL(page.url()).searchParams.getAll("mint")).toEqual([holders]);
    expect(page.offences).toEqual([]);
  });

  it("says that there is no such account, and warns of an id that the network does not know", async () => {
    const page = await visit(`${world.url}/?handle=suspended`);
    await page.getByRole("heading", { name: "There is no @suspended" }).waitFor();
    expect(await violationsOn(page)).toEqual([]);
    await page.goto(`${world.url}/?socialId=123456`);
    await page.getByText("Check the link before you rely on this address.").waitFor();
    await page.goto(`${world.url}/?handle=creator&mint=nonsense`);
    await page.getByRole("button", { name: "Show the creator without coins" }).click();
    await partsOf(page).name.getByText("The Creator").waitFor();
    expect(consoleErrors(page)).toEqual([]);
  });

  it("tries again when the server was unreachable, and needs no stream", async () => {
    const page = await visit(`${world.url}/`);
    await page.clock.install();
    let isDown = true;
    await page.route("**/graphql", (route) => {
      if (isDown) return route.abort();
      // A proxy may hold streams back.
      if (route.request().headers().accept === "text/event-stream") return undefined;
      return route.continue();
    });
    await page.getByRole("link", { name: "graduate" }).click();
    await page.getByRole("heading", { name: "The server is unreachable" }).waitFor();
    expect(await violationsOn(page)).toEqual([]);
    isDown = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.clock.fastForward(10_000);
    await partsOf(page).amount("Waiting").getByText("1.5000").waitFor();
  });

  it.each([
    ["light", 1280],
    ["dark", 390],
  ] as const)(
    "has no violation that axe finds, in %s mode at %d pixels",
    async (colorScheme, width) => {
      const { coins } = world.account("variety");
      const mints = coins.map(({ mint }) => `&mint=${mint}`).join("");
      const page = await visit(`${world.url}/?handle=variety${mints}`);
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 844 });
      await waitForAll(page);
      expect(await violationsOn(page)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    },
  );
});
