import { existsSync } from "node:fs";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe } from "vitest";

/**
 * Path of the Debian package. The package `chromium`, which also draws windows, takes twice the CPU
 * time.
 */
const CHROMIUM = "/usr/bin/chromium-headless-shell";
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Shorter than the timeout of a test, so that the error names the step that timed out. */
const TIMEOUT_MS = 150_000;

const isInstalled = existsSync(CHROMIUM);
const title = isInstalled ? "" : ` (no ${CHROMIUM}: apt-get install chromium-headless-shell)`;

/** A page that records violations. */
export interface WatchedPage extends Page {
  /**
   * Requests to other hosts, errors in the console, and violations of the content security policy.
   */
  readonly offences: string[];
}

/**
 * Tests that need a browser; the block shares one. Without Chromium they are skipped with a note,
 * and fail in CI. `visit` opens the address in a new browser profile, until the end of the test.
 */
export function describeWithBrowser(
  name: string,
  tests: (visit: (url: string, options?: BrowserContextOptions) => Promise<WatchedPage>) => void,
): void {
  describe.skipIf(!isInstalled && !process.env.CI)(name + title, () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await chromium.launch({
        executablePath: CHROMIUM,
        args: FLAGS,
        timeout: TIMEOUT_MS,
      });
    });
    afterAll(() => browser.close());
    const pages: Page[] = [];
    // An open page may hold a connection, and a caller may have only some.
    afterEach(() => Promise.all(pages.splice(0).map((page) => page.close())));

    tests(async (url, options) => {
      const page = await browser.newPage(options);
      pages.push(page);
      page.setDefaultTimeout(TIMEOUT_MS);
      const offences: string[] = [];
      page.on("request", (request) => {
        const { protocol, host, hostname, pathname } = new URL(request.url());
        // The sandbox's network has the picture of `creator`.
        const isPicture = hostname === "127.0.0.1" && pathname === "/pictures/creator.svg";
        if (protocol.startsWith("http") && host !== new URL(url).host && !isPicture)
          offences.push(`requested ${request.url()}`);
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
