// A headless Chromium that records errors and requests of its pages.
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { eventually } from "./poll.ts";
import { runEnd } from "./run-end.ts";

export interface Visit {
  readonly title: string;
  /** All text of the page. */
  readonly text: string;
  /** Errors and warnings of the console, exceptions, failed and blocked requests. */
  readonly complaints: readonly string[];
  /** Every requested URL. */
  readonly requested: readonly string[];
}

/** Debian's; playwright-core brings none of its own. The shell has no window, and takes four fifths of the processor time. */
const EXECUTABLE =
  ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find((path) => existsSync(path)) ?? "";

/**
 * Playwright's own and, at the end, those of the window's buttons, of which each context would start a process, and a process in
 * reserve: with both, a context costs half as much again. The browser reads the last list only.
 */
const DISABLED_FEATURES = [
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsUpgrades",
  "HttpsFirstBalancedModeAutoEnable",
  "LensOverlay",
  "MediaRouter",
  "PaintHolding",
  "ThirdPartyStoragePartitioning",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "OptimizationHints",
  "NetworkTimeServiceQuerying",
  "AimEnabled",
  "PreconnectToSearch",
  "InitialWebUI",
  "PreloadTopChromeWebUI",
  "SpareRendererForSitePerProcess",
  "WebUIReloadButton",
  "WebUIToolbar",
];

/**
 * `home`: where it reads the roots that the user trusts; default: the one of the tests. `quicTo`: hosts with ports that it asks over
 * HTTP/3; default: none.
 */
export function openBrowser({
  args = [],
  home,
  quicTo = [],
}: {
  readonly args?: readonly string[];
  readonly home?: string;
  readonly quicTo?: readonly string[];
} = {}): Promise<Browser> {
  return chromium.launch({
    executablePath: EXECUTABLE,
    ...(home === undefined ? {} : { env: { ...process.env, HOME: home } }),
    args: [
      ...args,
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      quicTo.length === 0 ? "--disable-quic" : `--origin-to-force-quic-on=${quicTo.join(",")}`,
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      `--disable-features=${DISABLED_FEATURES.join(",")}`,
    ],
  });
}

/** How long a step on a page may take on a machine that is busy with other things; the default of Playwright is 30 s. */
export const STEP_MS = 120_000;

const shared: { browser: Browser | null } = { browser: null };

export interface BrowserLease {
  readonly browser: Browser;
  /** Closes it, unless other test files of the process use it as well. */
  release(): Promise<void>;
}

/** One browser for all test files of a process; each opens contexts of its own. */
export async function leaseBrowser(): Promise<BrowserLease> {
  if (runEnd.callbacks === null) {
    const browser = await openBrowser();
    return { browser, release: () => browser.close() };
  }
  if (shared.browser?.isConnected() !== true) {
    const browser = await openBrowser();
    shared.browser = browser;
    runEnd.callbacks.push(() => browser.close());
  }
  return { browser: shared.browser, release: async () => undefined };
}

export interface VisitOptions {
  readonly url: string;
  /** CSS selector of something that only a page that works shows. */
  readonly shows: string;
  /** Saves a screenshot of the whole window there. */
  readonly screenshot?: string;
  readonly dark?: boolean;
  readonly width?: number;
}

/** Opens a page in a new profile and waits until it shows the expected element and is idle. */
export async function visit(browser: Browser, options: VisitOptions): Promise<Visit> {
  const { url, shows, screenshot, dark = false, width = 1280 } = options;
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: dark ? "dark" : "light",
    ignoreHTTPSErrors: true,
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  const requested: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()))
      complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`exception: ${error.message}`));
  const pending = new Set<unknown>();
  page.on("request", (request) => {
    pending.add(request);
    requested.push(request.url());
  });
  page.on("requestfinished", (request) => pending.delete(request));
  page.on("requestfailed", (request) => {
    pending.delete(request);
    complaints.push(`failed: ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()}: ${response.url()}`);
  });
  try {
    await page.goto(url);
    await page.waitForSelector(shows, { timeout: 30_000 });
    // Playwright's own "networkidle" never comes under Bun.
    await eventually(() => pending.size === 0);
    await page.evaluate("new Promise((resolve) => requestIdleCallback(resolve))");
    if (screenshot !== undefined) await page.screenshot({ path: screenshot });
    const [title, text] = await Promise.all([page.title(), page.textContent("body")]);
    return { title, text: text ?? "", complaints, requested };
  } finally {
    await context.close();
  }
}
