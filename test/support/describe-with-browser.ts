import { existsSync } from "node:fs";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe } from "vitest";

/** Where Debian puts it. */
const CHROMIUM = "/usr/bin/chromium";
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Less than a test's, so that what was waited for is named. */
const TIMEOUT_MS = 150_000;

const isInstalled = existsSync(CHROMIUM);
const title = isInstalled ? "" : ` (no ${CHROMIUM}: apt-get install chromium)`;

/** A page, with what has happened in it that should not. */
export interface WatchedPage extends Page {
  /** Requests to other hosts, errors in the console, and what the content security policy has refused. */
  readonly offences: string[];
}

/**
 * Tests that need a browser: one for the whole block. Where there is none they are skipped and say so; in
 * CI they fail. `visit` opens the address in a browser profile of its own.
 */
export function describeWithBrowser(
  name: string,
  tests: (visit: (url: string) => Promise<WatchedPage>) => void,
): void {
  describe.skipIf(!isInstalled && !process.env.CI)(name + title, () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS, timeout: TIMEOUT_MS });
    });
    afterAll(() => browser.close());

    tests(async (url) => {
      const page = await browser.newPage();
      page.setDefaultTimeout(TIMEOUT_MS);
      const offences: string[] = [];
      page.on("request", (request) => {
        const { protocol, host } = new URL(request.url());
        if (protocol.startsWith("http") && host !== new URL(url).host)
          offences.push(`asked ${request.url()}`);
      });
      page.on("console", (message) => {
        if (message.type() === "error") offences.push(message.text());
      });
      page.on("pageerror", (error) => offences.push(error.message));
      await page.goto(url);
      return Object.assign(page, { offences });
    });
  });
}
