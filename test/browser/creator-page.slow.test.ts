import { PublicKey } from "@solana/web3.js";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { describeWithBrowser, type WatchedPage } from "../support/describe-with-browser.ts";
import { eventually } from "../support/eventually.ts";
import { isMethod } from "../support/sandbox.ts";
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
    await page.getByText("This is a sandbox: no real money.").first().waitFor();
    await page.getByLabel("Handle").fill("@creator");
    await page.keyboard.press("Enter");
    const { card, name, amount, collect, outcome, history } = partsOf(page);
    await amount("Waiting").getByText("3.1000").waitFor();
    expect(await amount("At the address").innerText()).toBe("5.2000 SOL");
    expect(await amount("Withdrawable").innerText()).toBe("8.1340 SOL");
    expect(await name.innerText()).toBe("The Creator");
    await name.getByRole("img", { name: "Verified" }).waitFor();
    expect(await card.innerText()).toContain("@creator · 1.3M followers");
    expect(await card.innerText()).toContain(world.account("creator").address);
    expect(page.url()).toBe(`${world.url}/?handle=creator`);
    expect(await page.title()).toBe("The Creator (@creator) · Tributary");
    await scrollToHistory(page);
    await history.getByText("Nothing has arrived").waitFor();

    await collect.focus();
    await page.keyboard.press("Enter");
    await outcome.getByText("Collected 3.1000 SOL").waitFor();
    expect(await card.locator("#outcome").count()).toBe(1);
    const signature = (await outcome.locator("code").getAttribute("title"))!;
    expect(world.sandbox.chain.landed(signature)?.err).toBeNull();
    await history.getByText("+3.1000 SOL").waitFor();
    await history.getByRole("img", { name: /^3\.1000 SOL arrived in 1 transfer since/ }).waitFor();
    expect(await history.getByRole("link").count()).toBe(0);
    await page.getByRole("button", { name: "Nothing to collect yet", disabled: true }).waitFor();
    // A disabled button has no focus.
    await eventually(async () => {
      expect(await outcome.evaluate((element) => element.matches(":focus"))).toBe(true);
    });
    expect(page.offences).toEqual([]);
  });

  it.each([320, 1280])(
    "keeps large amounts inside the card at %i pixels, in a wide font",
    async (width) => {
      const { chain } = world.sandbox;
      const { address, creatorVault } = world.account("artist100");
      for (const [account, lamports] of [
        [address, 371_049_386_535n],
        [creatorVault, 1_234_567_890_000n],
      ] as const) {
        const before = chain.balance(account);
        chain.setBalance(account, lamports);
        onTestFinished(() => {
          chain.setBalance(account, before);
        });
      }
      const page = await visit(`${world.url}/?handle=artist100`);
      await page.setViewportSize({ width, height: 844 });
      const { amount } = partsOf(page);
      await amount("At the address").getByText("371.0493").waitFor();
      // At 1280 pixels all three are as long.
      const overflowing = await page.evaluate(`
        document.body.style.fontFamily = "Verdana, 'DejaVu Sans'";
        const card = document.querySelector("#creator > section").getBoundingClientRect();
        [...document.querySelectorAll(".figures > div")].flatMap((figure) => {
          const { right } = figure.getBoundingClientRect();
          const money = figure.querySelector(".amount ~ .unit").getBoundingClientRect();
          return money.right > Math.min(right, card.right) ? [figure.textContent] : [];
        })`);
      expect(overflowing).toEqual([]);
      const lines = await page.getByRole("button", { name: "Copy" }).evaluate((button) => {
        const text = document.createRange();
        text.selectNodeContents(button);
        return text.getClientRects().length;
      });
      expect(lines).toBe(1);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
    },
  );

  it.each([" @ "])("says what is missing in %j, and moves the focus there", async (text) => {
    const page = await visit(`${world.url}/`);
    const field = page.getByLabel("Handle");
    await field.fill(text);
    await page.getByRole("button", { name: "Look up" }).click();
    await page.getByRole("alert").getByText("Enter a handle, or paste").waitFor();
    expect(await field.evaluate((element) => element.matches(":focus"))).toBe(true);
    expect(page.url()).toBe(`${world.url}/`);
  });

  it("leads to the lookup's JSON without JavaScript, and says so above the form", async () => {
    const page = await visit(`${world.url}/`, { javaScriptEnabled: false });
    // Playwright finds no text in it.
    const sentence = page.locator("noscript p");
    expect(await sentence.innerText()).toContain("leads to its lookup as JSON");
    const field = page.getByLabel("Handle");
    const [above, below] = [await sentence.boundingBox(), await field.boundingBox()];
    expect(above!.y + above!.height).toBeLessThan(below!.y);
    await field.fill("creator");
    await field.press("Enter");
    await page.getByText(world.account("creator").address).waitFor();
    expect(page.url()).toBe(`${world.url}/wallet/lookup?handle=creator`);
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

  it("goes on until the vault and the shared coin are collected, and shows both transactions", async () => {
    const [{ mint }] = world.account("band").coins as readonly [{ mint: string }, ...unknown[]];
    const page = await visit(`${world.url}/?handle=band&mint=${mint}`);
    const { collect, outcome, amount } = partsOf(page);
    await collect.click();
    await outcome.getByText(/^Collected [\d.]+ SOL/).waitFor();
    await amount("Waiting").getByText("0.0000").waitFor();
    const links = outcome.getByRole("link", { name: /^Transaction .* in the explorer$/ });
    expect(
      (await links.count()) + (await outcome.getByText(/^Transaction/).count()),
    ).toBeGreaterThan(1);
    expect(await outcome.getByText(/still wait/).count()).toBe(0);
    expect(page.offences).toEqual([]);
  });

  it("has nothing to collect for an empty vault, or one with less than it shows", async () => {
    for (const handle of ["artist010", "dusty"]) {
      const page = await visit(`${world.url}/?handle=${handle}`);
      await page.getByRole("button", { name: "Nothing to collect yet", disabled: true }).waitFor();
    }
  });

  it("shows a failed collect in red, with what to do", async () => {
    const remove = world.sandbox.rpc.faults.add({
      when: isMethod("simulateTransaction"),
      then: { status: 500, body: "" },
    });
    const page = await visit(`${world.url}/?handle=artist001`);
    const { outcome } = partsOf(page);
    await page.getByRole("button", { name: /^Collect 0/ }).click();
    await outcome.getByText("The collect failed").waitFor();
    expect(await outcome.innerText()).toMatch(/Try again in a minute\. .*: [\da-f-]{36}\.$/);
    expect(await outcome.getAttribute("class")).toContain("failed");
    expect(await violationsOn(page)).toEqual([]);
    remove();
  });

  it("shows a refused collect in neutral colours, with what to do", async () => {
    const { chain, feePayer } = world.sandbox;
    const balance = chain.balance(feePayer);
    const page = await visit(`${world.url}/?handle=artist009`);
    await page.getByRole("button", { name: /^Collect 23/ }).waitFor();
    chain.setBalance(feePayer, 0n);
    const { collect, outcome } = partsOf(page);
    await collect.click();
    await outcome.getByText("Nothing was moved. Try again later.").waitFor();
    expect(await outcome.getAttribute("class")).toContain("refused");
    expect(await violationsOn(page)).toEqual([]);
    chain.setBalance(feePayer, balance);
  });

  it("says that there is no such account, and warns of an id that the network does not know", async () => {
    const page = await visit(`${world.url}/?handle=suspended`);
    await page.getByRole("heading", { name: "There is no @suspended" }).waitFor();
    const another = page.getByRole("link", { name: "creator" });
    await another.waitFor();
    expect(await violationsOn(page)).toEqual([]);
    await another.click();
    await partsOf(page).name.getByText("The Creator").waitFor();
    expect(await another.isVisible()).toBe(false);
    await page.goto(`${world.url}/?handle=a_b`);
    await page.getByText("This service does not take handles with underscores.").first().waitFor();
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
      const page = await visit(`${world.url}/`);
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 844 });
      expect(await violationsOn(page)).toEqual([]);
      for (const query of ["handle=creator", "handle=artist010", `handle=variety${mints}`]) {
        await page.goto(`${world.url}/?${query}`);
        await waitForAll(page);
        expect(await violationsOn(page)).toEqual([]);
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      }
    },
  );
});
