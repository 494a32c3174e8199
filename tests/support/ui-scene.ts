// The web UI of a real gateway in a real browser: users of each role, accessibility, screenshots; for any page.
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { leaseBrowser, STEP_MS } from "./browser.ts";
import { type Gateway, type GatewayOptions, startGateway } from "./gateway.ts";
import { type Need, needs } from "./needs.ts";
import { eventually } from "./poll.ts";
import { executable } from "./executable.ts";

export type UiRole = "viewer" | "editor" | "admin";

export const UI_PASSWORD = "correct horse battery";
export const emailOf = (role: UiRole): string => `${role}@ui.example`;

/** A page, and its unexpected errors and requests. */
export interface UiPage {
  readonly page: Page;
  /** Errors and warnings of the console, exceptions, requests to other origins. Expected refusals are left to the caller. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

export interface OpenOptions {
  readonly path?: string;
  readonly width?: number;
  readonly height?: number;
  readonly dark?: boolean;
  /** Status codes that this test causes, such as 412: browsers write them to the console. */
  readonly expects?: readonly number[];
}

export interface OpenAsOptions extends OpenOptions {
  /** Signs in on the sign-in page; default: pages of a role share a session, which the API created. */
  readonly signsIn?: boolean;
}

export interface UiScene {
  readonly gateway: Gateway;
  /** Opens a page in a profile of its own. */
  open(options?: OpenOptions): Promise<UiPage>;
  /** Creates the first admin and a user of each other role, by the API. */
  createPeople(): Promise<void>;
  /** Opens a page as a user of this role; requires `createPeople`. */
  openAs(role: UiRole, options?: OpenAsOptions): Promise<UiPage>;
  /** The header of a session of a user of this role; requires `createPeople`. */
  cookieOf(role: UiRole): Promise<{ cookie: string }>;
  /** Starts an HTTP server on 127.0.0.1. */
  serve(fetch: (request: Request) => Response | Promise<Response>): Bun.Server<undefined>;
  stop(): Promise<void>;
}

/** Starts the executable and a browser. `binary: ""` runs the sources. */
export async function startUi(options: GatewayOptions = {}): Promise<UiScene> {
  const { binary = executable } = options;
  return await openUi(await startGateway({ ...options, binary }));
}

/** One gateway and one browser for all tests of a file; they start before what its own `beforeAll` does. */
export function useUi(options: GatewayOptions = {}, ...more: readonly Need[]) {
  const kit = needs("executable", "chromium", ...more);
  let started: UiScene | null = null;
  kit.beforeAll(async () => {
    started = await startUi(options);
  });
  kit.afterAll(() => started?.stop());
  const own = (): UiScene => {
    if (started === null) throw new Error("the gateway has not started");
    return started;
  };
  const scene: Omit<UiScene, "stop"> = {
    get gateway() {
      return own().gateway;
    },
    open: (opened) => own().open(opened),
    createPeople: () => own().createPeople(),
    openAs: (role, opened) => own().openAs(role, opened),
    cookieOf: (role) => own().cookieOf(role),
    serve: (fetch) => own().serve(fetch),
  };
  return { ...kit, scene };
}

/** Opens a browser for a gateway that runs; `stop` stops the gateway and closes the pages. */
export async function openUi(gateway: Gateway): Promise<UiScene> {
  const { browser, release } = await leaseBrowser().catch(async (error) => {
    await gateway.stop();
    throw error;
  });
  const contexts = new Set<BrowserContext>();
  const sessions = new Map<UiRole, string>();
  const servers: Bun.Server<undefined>[] = [];
  const cookieFor = async (role: UiRole) => {
    const cookie = await sessionOf(gateway, role, sessions.get(role));
    sessions.set(role, cookie);
    return cookie;
  };
  const open = async (options: OpenOptions, cookie = "") => {
    const context = await newContext(browser, options);
    contexts.add(context);
    if (cookie !== "") await context.addCookies([cookieOf(cookie, gateway.admin)]);
    const page = await context.newPage();
    const complaints = watch(page, gateway.admin, options.expects ?? []);
    await page.goto(`${gateway.admin}${options.path ?? "/"}`);
    const close = async () => {
      contexts.delete(context);
      await context.close();
    };
    return { page, complaints, close };
  };
  return {
    gateway,
    open: (options = {}) => open(options),
    createPeople: () => createPeople(gateway),
    async openAs(role, options = {}) {
      if (options.signsIn === true) {
        const opened = await open({ ...options, path: "/" });
        await signIn(opened.page, role);
        if (options.path !== undefined) await opened.page.goto(`${gateway.admin}${options.path}`);
        await isQuiet(opened.page);
        return opened;
      }
      const opened = await open(options, await cookieFor(role));
      await isSignedIn(opened.page);
      await isQuiet(opened.page);
      return opened;
    },
    cookieOf: async (role) => ({ cookie: await cookieFor(role) }),
    serve(fetch) {
      const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
      servers.push(server);
      return server;
    },
    async stop() {
      if (browser.isConnected())
        for (const context of contexts) await context.close().catch(() => undefined);
      await release();
      await gateway.stop();
      for (const server of servers) await server.stop(true);
    },
  };
}

/** `PAIR` as the gateway sets it. */
function cookieOf(pair: string, url: string) {
  const at = pair.indexOf("=");
  return {
    name: pair.slice(0, at),
    value: pair.slice(at + 1),
    // With a public address of HTTPS the name demands it, also where the tests use HTTP on loopback.
    url: pair.startsWith("__Host-") ? url.replace(/^http:/, "https:") : url,
    httpOnly: true,
    sameSite: "Lax" as const,
  };
}

/** The cookie of a session of this role: the known one while it is valid, else a new one. */
async function sessionOf(gateway: Gateway, role: UiRole, known = ""): Promise<string> {
  if (known !== "") {
    const me = await gateway.api("GET", "/api/v1/auth/me", undefined, { cookie: known });
    if (me.status === 200) return known;
  }
  const body = { email: emailOf(role), password: UI_PASSWORD };
  const login = await gateway.api("POST", "/api/v1/auth/login", body);
  if (login.status !== 200) throw new Error(`no session of ${role}: ${await login.text()}`);
  return login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
}

async function newContext(browser: Browser, options: OpenOptions): Promise<BrowserContext> {
  const { width = 1280, height = 900, dark = false } = options;
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
    reducedMotion: "reduce",
  });
  context.setDefaultTimeout(STEP_MS);
  return context;
}

/** Before sign-in, the page requests the current user and gets status 401. */
const EXPECTED = /\/api\/v1\/auth\/me$/;

function watch(page: Page, origin: string, expects: readonly number[]): string[] {
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (!["error", "warning"].includes(message.type())) return;
    const { url } = message.location();
    const status = Number(/status of (\d+)/.exec(message.text())?.[1] ?? 0);
    if (EXPECTED.test(url) || expects.includes(status)) return;
    complaints.push(`${message.type()}: ${message.text()} (${url})`);
  });
  page.on("crash", () => complaints.push(`the renderer crashed at ${page.url()}`));
  page.on("pageerror", (error) => complaints.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:"))
      complaints.push(`asked another origin: ${url}`);
  });
  return complaints;
}

async function createPeople(gateway: Gateway): Promise<void> {
  const person = (role: UiRole) => ({
    email: emailOf(role),
    name: `The ${role}`,
    role,
    password: UI_PASSWORD,
  });
  await gateway.ok("POST", "/api/v1/users", person("admin"));
  const login = await gateway.api("POST", "/api/v1/auth/login", {
    email: emailOf("admin"),
    password: UI_PASSWORD,
  });
  const cookie = login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  for (const role of ["editor", "viewer"] as const) {
    const made = await gateway.api("POST", "/api/v1/users", person(role), { cookie });
    if (made.status !== 200) throw new Error(`no ${role}: ${await made.text()}`);
  }
}

/** Fills in the sign-in page, and waits for the dashboard. */
export async function signIn(page: Page, role: UiRole): Promise<void> {
  await page.getByLabel("E-mail address").fill(emailOf(role));
  await page.locator('input[type="password"]').fill(UI_PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await isSignedIn(page);
}

const isSignedIn = (page: Page) =>
  page.getByRole("navigation", { name: "Pages" }).waitFor({ state: "attached" });

/** Tells a page that shows something else from a browser that hangs. */
async function stateOf(page: Page): Promise<string> {
  const asked = page.evaluate(
    `JSON.stringify({
      state: document.readyState,
      text: document.body?.innerText.slice(0, 300),
      loading: performance.getEntriesByType("resource").filter(({ responseEnd }) => responseEnd === 0).map(({ name }) => name),
    })`,
  ) as Promise<string>;
  return await Promise.race([asked, Bun.sleep(5000).then(() => "the page does not respond")]);
}

/** Waits until nothing is loading: no skeleton, no spinner. */
export async function isQuiet(page: Page): Promise<void> {
  await page
    .locator("h1")
    .first()
    .waitFor()
    .catch(async (error: unknown) => {
      throw new Error(`${page.url()} has no heading: ${await stateOf(page)}`, { cause: error });
    });
  await eventually(
    async () => (await page.locator('[aria-busy="true"], .mantine-Loader-root').count()) === 0,
    { deadlineMs: STEP_MS },
  );
}

/** Shows another page of the UI as a link to it does: without loading the application again. */
export async function follow(page: Page, path: string): Promise<void> {
  await page.evaluate((to) => history.pushState(null, "", to), path);
  await isQuiet(page);
}

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

interface Finding {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/** All findings of axe-core on the current page, one line each; expected to be empty. */
export async function checkAccessible(page: Page): Promise<string[]> {
  // Between two pages there is none.
  await page.locator("h1").first().waitFor();
  // The page's policy forbids inline scripts, but does not apply to evaluated ones.
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(await Bun.file(axe).text());
  const findings = (await page.evaluate(
    `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)`,
  )) as Finding[];
  return findings.flatMap(({ id, nodes }) =>
    nodes
      .filter(({ html }) => id !== "region" || !OPEN_MENU.test(html))
      .map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${failureSummary}`),
  );
}

/** A menu lies above the page, beside its landmarks, and belongs to the button that it is labelled by. */
const OPEN_MENU = /role="menu"|mantine-Menu-/;

export const SCREENSHOTS = resolve(import.meta.dir, "../../dist/screenshots");

/** They cost a third of the tests' time, and no test reads them. */
export const SAVES_SCREENSHOTS = process.env["SLUICE_SCREENSHOTS"] === "1";

/**
 * With `SLUICE_SCREENSHOTS=1`, saves screenshots of the page as NAME-WIDTH-SCHEME.png in dist/screenshots, at three widths, light
 * and dark.
 */
export async function screenshots(page: Page, name: string): Promise<void> {
  if (!SAVES_SCREENSHOTS) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  const before = page.viewportSize();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await hasScheme(page, colorScheme);
    for (const width of [380, 768, 1440]) {
      await page.setViewportSize({ width, height: 900 });
      await isQuiet(page);
      await page.screenshot({ path: join(SCREENSHOTS, `${name}-${width}-${colorScheme}.png`) });
    }
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  if (before !== null) await page.setViewportSize(before);
  await hasScheme(page, "light");
}

/** The page changes with a delay; a screenshot before that would show a mix of colors. */
export async function hasScheme(page: Page, scheme: "light" | "dark"): Promise<void> {
  await eventually(
    async () =>
      (await page.evaluate("document.documentElement.dataset.mantineColorScheme")) === scheme,
  );
  await page.evaluate(
    "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(null))))",
  );
}
