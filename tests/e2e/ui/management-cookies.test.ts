// A real browser that an admin is signed in with, and a compromised application on another port of the same host.
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { leaseBrowser, STEP_MS } from "../../support/browser.ts";
import { selfSigned } from "../../support/certificate.ts";
import { startGateway } from "../../support/gateway.ts";
import { type Origin, reply, startOrigin } from "../../support/origin.ts";
import { executable } from "../../support/executable.ts";
import { emailOf, signIn, useUi, UI_PASSWORD } from "../../support/ui-scene.ts";

const { afterAll, beforeAll, scene, test } = useUi({ workers: 1 });

let app: Origin;

const logIn = async (role: "admin" | "viewer") => {
  const body = { email: emailOf(role), password: UI_PASSWORD };
  const login = await scene.gateway.api("POST", "/api/v1/auth/login", body);
  return login.headers.getSetCookie()[0]?.split(";")[0] ?? "";
};

beforeAll(async () => {
  app = startOrigin({
    answer: reply("an application", { headers: "Content-Type: text/html\r\n" }),
  });
  await scene.createPeople();
  const cookie = await logIn("admin");
  const targets = [{ host: "127.0.0.1", port: app.port }];
  for (const [path, body] of [
    ["services", { name: "app", targets }],
    ["routes", { name: "app", service_id: "app" }],
  ] as const) {
    const made = await scene.gateway.api("POST", `/api/v1/${path}`, body, { cookie });
    expect(made.status).toBe(200);
  }
});
afterAll(async () => {
  app?.stop();
});

const url = () => `http://127.0.0.1:${scene.gateway.httpPort}/`;

test("the browser sends the application no cookie for the management API", async () => {
  const { page, close } = await scene.openAs("admin", { signsIn: true });
  const before = app.requests.length;
  await page.goto(url());
  await page.evaluate("document.cookie = 'own=1; path=/'");
  await page.reload();
  const cookies = app.requests.slice(before).map((request) => request.header("cookie"));
  // The browser requests an icon besides the page.
  expect(new Set(cookies)).toEqual(new Set([null, "own=1"]));
  await page.goto(`${scene.gateway.admin}/`);
  await page.getByRole("navigation", { name: "Pages" }).waitFor({ state: "attached" });
  await close();
});

test("the application cannot replace the admin's session for long", async () => {
  const { page, close } = await scene.openAs("admin", { signsIn: true, expects: [401] });
  const planted = await logIn("viewer");
  await page.goto(url());
  // The application learns the id of the installation from CDN-Loop, and from it the name.
  const id = /sluice-[\w-]+-\w{4}(\w{8})/.exec(app.requests.at(-1)?.header("cdn-loop") ?? "")?.[1];
  expect(planted).toStartWith(`sluice_session_${id}=`);
  await page.evaluate(`document.cookie = "${planted}; path=/api"`);
  await page.goto(`${scene.gateway.admin}/`);
  // The application cannot choose between the two: the admin signs in once more, and the planted cookie is invalid.
  await signIn(page, "admin");
  const me = await page.evaluate("fetch('/api/v1/auth/me').then((answer) => answer.json())");
  expect(me).toMatchObject({ user: { email: emailOf("admin") } });
  expect(
    (await scene.gateway.api("GET", "/api/v1/auth/me", undefined, { cookie: planted })).status,
  ).toBe(401);
  await close();
});

test("over HTTPS a browser stores the cookie with the prefix, and sign-out removes it", async () => {
  const directory = mkdtempSync(join(tmpdir(), "sluice-cookies-"));
  const { cert, key } = await selfSigned();
  writeFileSync(join(directory, "cert.pem"), cert);
  writeFileSync(join(directory, "key.pem"), key);
  const gateway = await startGateway({
    binary: executable,
    workers: 1,
    args: [
      ...["--admin-tls-cert", join(directory, "cert.pem")],
      ...["--admin-tls-key", join(directory, "key.pem")],
    ],
  });
  const { browser, release } = await leaseBrowser();
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  context.setDefaultTimeout(STEP_MS);
  try {
    const person = { email: emailOf("admin"), name: "A", role: "admin", password: UI_PASSWORD };
    await gateway.ok("POST", "/api/v1/users", person);
    const page = await context.newPage();
    await page.goto(`${gateway.admin}/`);
    await signIn(page, "admin");
    const [cookie, ...others] = await context.cookies();
    expect(others).toEqual([]);
    expect(cookie).toMatchObject({ secure: true, httpOnly: true, path: "/" });
    expect(cookie?.name).toMatch(/^__Host-sluice_session_[0-9a-f]{8}$/);
    await page.evaluate("fetch('/api/v1/auth/logout', { method: 'POST' })");
    expect(await context.cookies()).toEqual([]);
  } finally {
    await context.close();
    await release();
    await gateway.stop();
    rmSync(directory, { recursive: true, force: true });
  }
});
