// Authentication for applications: oidc in a real browser against a certified provider, ldap-auth against OpenLDAP.
import { describe, expect } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { openBrowser } from "../support/browser.ts";
import { freePort } from "../support/data-plane.ts";
import { needs } from "../support/needs.ts";
import { pluginScene } from "../support/plugin-scene.ts";
import { eventually } from "../support/poll.ts";
import { startProvider } from "../integration/sso/real-provider.ts";

const CALLBACK = "/_sluice/oidc/callback";
const LOGOUT = "/_sluice/oidc/logout";

describe("oidc in Chromium", () => {
  const { afterAll, beforeAll, test } = needs("chromium");
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  test("a user is redirected to the provider, signs in, stays signed in, and signs out", async () => {
    const scene = await pluginScene({
      answer: (request) =>
        new Response(`<h1>hello ${request.headers.get("x-auth-user")}</h1>`, {
          headers: { "Content-Type": "text/html" },
        }),
    });
    const provider = await startProvider(
      { "ann@example.com": { name: "Ann" } },
      [
        {
          client_id: "app",
          client_secret: "s3cret",
          token_endpoint_auth_method: "client_secret_basic",
        },
      ],
      [scene.plane.url + CALLBACK],
    );
    try {
      await scene.apply({
        plugins: [
          {
            name: "oidc",
            config: { issuer: provider.issuer, client_id: "app", client_secret: "s3cret" },
          },
        ],
      });
      const context = await browser.newContext();
      const page = await context.newPage();
      await page.goto(`${scene.plane.url}/deep/page?x=1#part`);
      expect(page.url()).toStartWith(provider.issuer);
      await page.fill('input[name="login"]', "ann@example.com");
      await page.fill('input[name="password"]', "any");
      await page.click('button[type="submit"]');
      await page.waitForSelector('input[value="consent"]', { state: "attached" });
      await page.click('button[type="submit"]');
      await page.waitForSelector("h1");
      expect(await page.textContent("h1")).toBe("hello ann@example.com");
      expect(page.url()).toStartWith(`${scene.plane.url}/deep/page?x=1`);

      // The session lasts, and pages cannot read it.
      await page.goto(`${scene.plane.url}/other`);
      expect(await page.textContent("h1")).toBe("hello ann@example.com");
      expect(await page.evaluate("document.cookie")).toBe("");
      expect(scene.requests.at(-1)?.headers["cookie"] ?? "").not.toContain("sluice");

      // The provider asks the user for confirmation.
      await page.goto(scene.plane.url + LOGOUT);
      await page.click('button[value="yes"]');
      await page.goto(`${scene.plane.url}/again`);
      expect(page.url()).toStartWith(provider.issuer);
      await context.close();

      // Scripts get an error status instead of a redirect.
      const script = await scene.get("/api", { Accept: "application/json" });
      expect(script.status).toBe(401);
    } finally {
      provider.stop();
      await scene.stop();
    }
  });
});

describe("ldap-auth against OpenLDAP", () => {
  const { afterAll, beforeAll, test } = needs("slapd");
  const folder = join(tmpdir(), `sluice-ldap-${Bun.randomUUIDv7()}`);
  const port = freePort();
  let server: ReturnType<typeof Bun.spawn>;

  beforeAll(async () => {
    const database = join(folder, "db");
    mkdirSync(database, { recursive: true });
    const schemas = ["core", "cosine", "inetorgperson"]
      .map((name) => `include /etc/ldap/schema/${name}.schema`)
      .join("\n");
    writeFileSync(
      join(folder, "slapd.conf"),
      `${schemas}
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile ${folder}/pid
database mdb
directory ${database}
suffix "dc=x"
rootdn "cn=admin,dc=x"
rootpw admin
access to attrs=userPassword by anonymous auth by * none
access to * by * read
`,
    );
    const person = (uid: string, password: string) => `dn: uid=${uid},ou=people,dc=x
objectClass: inetOrgPerson
uid: ${uid}
cn: ${uid}
sn: ${uid}
userPassword: ${password}
`;
    writeFileSync(
      join(folder, "data.ldif"),
      `dn: dc=x
objectClass: dcObject
objectClass: organization
dc: x
o: x

dn: ou=people,dc=x
objectClass: organizationalUnit
ou: people

${person("ann", "right")}
${person("bob", "bob's")}
dn: cn=staff,dc=x
objectClass: groupOfNames
cn: staff
member: uid=ann,ou=people,dc=x
`,
    );
    const config = join(folder, "slapd.conf");
    const added = Bun.spawnSync([
      "/usr/sbin/slapadd",
      "-f",
      config,
      "-l",
      join(folder, "data.ldif"),
    ]);
    expect(added.stderr.toString()).not.toContain("error");
    server = Bun.spawn(
      ["/usr/sbin/slapd", "-d", "0", "-f", config, "-h", `ldap://127.0.0.1:${port}/`],
      {
        stdout: "ignore",
        stderr: "ignore",
      },
    );
    await eventually(async () => {
      const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } });
      socket.end();
      return true;
    });
  });
  afterAll(async () => {
    server.kill();
    await server.exited;
    rmSync(folder, { recursive: true });
  });

  const basic = (username: string, password: string) => ({
    Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
  });

  test.each([
    ["binding as the person", { bind_dn: "uid=${username},ou=people,dc=x" }],
    [
      "searching for the person first",
      { bind_dn: "cn=admin,dc=x", bind_password: "admin", base_dn: "ou=people,dc=x" },
    ],
  ])("%s, right passwords are accepted and wrong ones rejected", async (_, config) => {
    const scene = await pluginScene({
      plugins: [
        { name: "ldap-auth", config: { url: `ldap://127.0.0.1:${port}`, cache_ttl: 0, ...config } },
      ],
    });
    try {
      expect((await scene.get("/", basic("ann", "right"))).status).toBe(200);
      expect((await scene.get("/", basic("bob", "bob's"))).status).toBe(200);
      expect((await scene.get("/", basic("ann", "wrong"))).status).toBe(401);
      // OpenLDAP treats an empty password as an anonymous bind, which succeeds.
      expect((await scene.get("/", basic("ann", ""))).status).toBe(401);
      expect((await scene.get("/", basic("ann)(uid=*", "right"))).status).toBe(401);
      expect((await scene.get("/", basic("ann,ou=people,dc=x", "right"))).status).toBe(401);
      expect((await scene.get("/", basic("nobody", "right"))).status).toBe(401);
    } finally {
      await scene.stop();
    }
  });
});
