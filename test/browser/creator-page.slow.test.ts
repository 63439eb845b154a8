import { PublicKey } from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { describeWithBrowser, type WatchedPage } from "../support/describe-with-browser.ts";
import { eventually } from "../support/eventually.ts";
import { hold, isMethod } from "../support/sandbox.ts";
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

/** Makes the page think that its tab is hidden, or visible again. */
const setHidden = (page: WatchedPage, isHidden: boolean) =>
  page.evaluate(`
    Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));`);

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

  const addFees = (handle: string) =>
    world.request("/sandbox/fees", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ socialId: world.account(handle).id, source: "VAULT" }),
    });

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

  it("holds no stream while it is hidden, and shows what has changed once it is visible", async () => {
    const openStreams = async () =>
      Number(/^tributary_streams_open (\d+)$/m.exec((await world.request("/metrics")).body)![1]);
    const page = await visit(`${world.url}/`);
    await page.addInitScript(
      'Object.defineProperty(document, "hidden", { value: true, configurable: true });',
    );
    await page.goto(`${world.url}/?handle=artist016`);
    const { amount } = partsOf(page);
    await page.getByRole("button", { name: /^Collect \d/ }).waitFor();
    expect(await openStreams()).toBe(0);
    await page.getByText("Updates paused").waitFor();

    await setHidden(page, false);
    await page.getByText("Live").waitFor();
    expect(await openStreams()).toBe(1);
    await setHidden(page, true);
    await expect.poll(openStreams).toBe(0);
    const before = await amount("Waiting").innerText();
    await addFees("artist016");
    await setHidden(page, false);
    await page.getByText("Live").waitFor();
    expect(await amount("Waiting").innerText()).not.toBe(before);
    expect(page.offences).toEqual([]);
  });

  it.each(["creator", "artist100"])(
    "looks up a numeric id, also one that could be a handle: that of %s",
    async (handle) => {
      const { id } = world.account(handle);
      const page = await visit(`${world.url}/`);
      await page.getByLabel("Handle").fill(id);
      await page.keyboard.press("Enter");
      await page.getByText(`@${handle}`).first().waitFor();
      expect(page.url()).toBe(`${world.url}/?socialId=${id}`);
      await page.goBack();
      await page.getByRole("heading", { name: /^Every creator/ }).waitFor();
    },
  );

  it("shows what others add and collect, in the figures and the history, without reload", async () => {
    const page = await visit(`${world.url}/?handle=artist002`);
    await waitForAll(page);
    const { amount, history } = partsOf(page);
    const before = await amount("Waiting").innerText();
    await addFees("artist002");
    await eventually(async () => {
      expect(await amount("Waiting").innerText()).not.toBe(before);
    });
    const { body } = await world.collect(world.account("artist002").id);
    await amount("Waiting").getByText("0.0000").waitFor();
    await history.getByText(`+${body.collected} SOL`).waitFor();
  });

  it("goes back and forward between accounts", async () => {
    const page = await visit(`${world.url}/`);
    const { name } = partsOf(page);
    for (const handle of ["graduate", "newcomer"]) {
      await page.getByLabel("Handle").fill(handle);
      await page.keyboard.press("Enter");
      await name.getByText(new RegExp(handle, "i")).waitFor();
    }
    await page.goBack();
    await name.getByText("Graduate").waitFor();
    await page.goBack();
    await page.getByRole("heading", { name: /^Every creator/ }).waitFor();
    expect(await page.title()).toBe("Tributary");
    await page.goForward();
    await name.getByText("Graduate").waitFor();
  });

  it("offers the coins that the account's last transactions swept, once the field for a mint has the focus", async () => {
    const { id, coins } = world.account("prolific");
    const mints = coins.slice(0, 2).map(({ mint }) => mint);
    await world.collect(id, {}, mints);
    world.sandbox.chain.advanceSlots(1);
    const page = await visit(`${world.url}/?handle=prolific`);
    await page.getByText("Live").waitFor();
    const { coins: region } = partsOf(page);
    const offers = region.getByRole("button", { name: /^Add coin / });
    expect(await offers.count()).toBe(0);
    await page.getByLabel("Count the fees that wait on a coin").focus();
    await eventually(async () => {
      expect(await offers.count()).toBe(2);
    });
    expect(await violationsOn(page)).toEqual([]);
    const [first] = mints;
    await region.getByRole("button", { name: `Add coin ${first!.slice(0, 4)}` }).click();
    await region.getByRole("button", { name: `Remove coin ${first!.slice(0, 4)}` }).waitFor();
    expect(new URL(page.url()).searchParams.getAll("mint")).toEqual([first]);
    expect(await offers.count()).toBe(1);
    await page.goto(`${world.url}/?handle=newcomer`);
    await page.getByText("Live").waitFor();
    expect(await offers.count()).toBe(0);
    expect(page.offences).toEqual([]);
  });

  it("copies the address, and a link that survives a rename", async () => {
    const { coins, address, id } = world.account("launcher");
    const mint = coins[0]!.mint;
    const page = await visit(`${world.url}/?handle=launcher&mint=${mint}`);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const clipboard = () => page.evaluate<string>("navigator.clipboard.readText()");
    await waitForAll(page);
    await page.getByRole("button", { name: "Copy" }).click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    expect(await clipboard()).toBe(address);
    await page.getByRole("button", { name: "Share", exact: true }).click();
    await eventually(async () => {
      expect(await clipboard()).toBe(`${world.url}/?socialId=${id}&mint=${mint}`);
    });

    world.sandbox.social.rename("launcher", "relaunched");
    const shared = await visit(await clipboard());
    await shared.getByText("@relaunched").waitFor();
    await shared.getByText("In the vault and on 1 coin").waitFor();
    world.sandbox.social.rename("relaunched", "launcher");
  });

  it.each([
    "https://x.com/Graduate?s=20",
    "twitter.com/graduate/",
    "https://mobile.twitter.com/@graduate/status/1",
  ])("understands the pasted %s", async (text) => {
    const page = await visit(`${world.url}/`);
    await page.getByLabel("Handle").fill(` ${text} `);
    await page.keyboard.press("Enter");
    await partsOf(page).name.getByText("Graduate").waitFor();
    expect(page.url()).toMatch(/\/\?handle=graduate$/i);
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

  it("lets people trade on a coin that the account shares, and adds the coin", async () => {
    const page = await visit(`${world.url}/?handle=band`);
    await waitForAll(page);
    await page.getByRole("button", { name: "on a shared coin" }).click();
    await page.getByText("SOL of fees appeared on a shared coin.").waitFor();
    const { mint } = world.account("band").coins[0]!;
    await eventually(() => {
      expect(new URL(page.url()).searchParams.getAll("mint")).toEqual([mint]);
    });
    await page.getByText("50% share").waitFor();
    await page.getByText("A collect pays all who share it.").waitFor();
    expect(page.offences).toEqual([]);
  });

  it("lets the whole flow be played with the mouse", async () => {
    const page = await visit(`${world.url}/`);
    await page.getByRole("link", { name: "newcomer" }).click();
    const { collect, outcome, amount, coins } = partsOf(page);
    await page.getByText("Live").waitFor();
    for (const place of ["in the vault", "on a curve", "in a pool"]) {
      const before = await amount("Waiting").innerText();
      await page.getByRole("button", { name: place }).click();
      await eventually(async () => {
        expect(await amount("Waiting").innerText()).not.toBe(before);
      });
    }
    await coins.getByText("Curve").waitFor();
    await coins.getByText("Pool").waitFor();
    expect(new URL(page.url()).searchParams.getAll("mint")).toHaveLength(2);
    const waiting = await amount("Waiting").innerText();
    await collect.click();
    await outcome.getByText(`Collected ${waiting}`).waitFor();
    await amount("At the address").getByText(waiting.split(" ")[0]!).waitFor();
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

  it.each([
    ["mainnet-beta", (signature: string) => `https://solscan.io/tx/${signature}`],
    ["devnet", (signature: string) => `https://explorer.solana.com/tx/${signature}?cluster=devnet`],
  ])("links transactions to the explorer of %s", async (cluster, toUrl) => {
    const handle = cluster === "devnet" ? "artist012" : "artist015";
    const page = await visit(`${world.url}/?handle=${handle}`);
    await page.evaluate(`document.body.dataset.cluster = "${cluster}"`);
    const { outcome, history } = partsOf(page);
    await page.getByRole("button", { name: /^Collect \d/ }).click();
    const link = outcome.getByRole("link", { name: /^Transaction .* in the explorer$/ });
    const signature = (await link.locator("code").getAttribute("title"))!;
    expect(await link.getAttribute("href")).toBe(toUrl(signature));
    expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
    await scrollToHistory(page);
    const shown = history.getByRole("link");
    expect(await shown.getAttribute("href")).toBe(toUrl(signature));
    await page.setViewportSize({ width: 390, height: 844 });
    const [transfer, list] = [
      await shown.boundingBox(),
      await history.locator(".rows").boundingBox(),
    ];
    expect(transfer!.x + transfer!.width).toBeLessThanOrEqual(list!.x + list!.width);
    expect(await violationsOn(page)).toEqual([]);
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

  it("shows the network's picture without telling where it is shown, and initials if there is none", async () => {
    const { id } = world.account("graduate");
    const url = "https://pbs.twimg.com/profile_images/1/face_normal.png";
    const user = { id, name: "Graduate Artist", username: "graduate", profile_image_url: url };
    const remove = world.sandbox.social.faults.add({
      then: {
        status: 200,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ data: [user] }),
      },
    });
    const page = await visit(`${world.url}/`);
    const requested: (string | undefined)[] = [];
    await page.route("https://pbs.twimg.com/**", (route) => {
      requested.push(route.request().url(), route.request().headers().referer);
      return requested.length === 2
        ? route.fulfill({ path: "src/http/pages/assets/home/touch-icon.png" })
        : route.abort();
    });
    await page.goto(`${world.url}/?socialId=${id}`);
    await page.locator("#avatar img.loaded").waitFor();
    expect(requested).toEqual([url.replace("_normal", "_400x400"), undefined]);
    await page.reload();
    await waitForAll(page);
    await eventually(async () => {
      expect(await page.locator("#avatar img").count()).toBe(0);
    });
    expect(await page.locator("#avatar").innerText()).toBe("GA");
    remove();
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

  describe("with the default rate limit", () => {
    let limited: World;
    beforeAll(async () => {
      limited = await startWorld();
    });
    afterAll(() => limited.close());
    let callers = 0;

    /** Opens an account's page from an address that no other test uses. */
    async function visitAlone(handle: string) {
      const page = await visit(`${limited.url}/`);
      const address = `192.0.2.${++callers}`;
      await page.setExtraHTTPHeaders({ "x-forwarded-for": address });
      await page.goto(`${limited.url}/?handle=${handle}`);
      return { page, address: { "x-forwarded-for": address } };
    }
    const remainingIn = (headers: Headers) => Number(/r=(\d+)/.exec(headers.get("ratelimit")!)![1]);

    it("costs one request for a view with live updates, and two more once its history is in view", async () => {
      const { page, address } = await visitAlone("creator");
      await page.getByText("Live").waitFor();
      await partsOf(page).amount("Waiting").getByText("3.1000").waitFor();
      const { headers } = await limited.lookup("creator", address);
      expect(remainingIn(headers)).toBe(20 - 1 - 1);
      const { history } = partsOf(page);
      const box = history.locator("#history");
      expect(await box.innerText()).toBe("");
      expect((await box.boundingBox())!.height).toBeGreaterThan(50);
      limited.forgetCalls();
      const release = hold(limited.sandbox.rpc, isMethod("getSignaturesForAddress"));
      await scrollToHistory(page);
      await expect.poll(() => limited.chainCalls()).toContain("getSignaturesForAddress");
      expect(await box.innerText()).toBe("");
      expect(await violationsOn(page)).toEqual([]);
      release();
      await waitForAll(page);
      const later = await limited.lookup("creator", address);
      expect(remainingIn(later.headers)).toBe(20 - 1 - 2 - 2);
    });

    it("counts down after a rate limit, and then collects again", async () => {
      const { page, address } = await visitAlone("graduate");
      await waitForAll(page);
      await page.clock.install();
      for (let left = 17; left > 0; left--) await limited.lookup("graduate", address);
      const { collect, outcome } = partsOf(page);
      await collect.click();
      await page
        .getByRole("button", { name: /^Collect again in \d+ s$/, disabled: true })
        .waitFor();
      await outcome.getByText("Wait for the countdown").waitFor();
      expect(await outcome.getAttribute("class")).toContain("refused");
      expect(await violationsOn(page)).toEqual([]);
      await page.clock.fastForward(61_000);
      await page.getByRole("button", { name: "Collect 1.5000 SOL", disabled: false }).waitFor();
    });

    it("counts down to another try when the account itself is refused", async () => {
      const { page, address } = await visitAlone("newcomer");
      await waitForAll(page);
      for (let left = 17; left > 0; left--) await limited.lookup("graduate", address);
      await page.clock.install();
      await page.reload();
      await page.getByText(/Trying again in \d+ s\./).waitFor();
      expect(await violationsOn(page)).toEqual([]);
    });
  });
});
