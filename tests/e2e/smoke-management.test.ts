// The management API, from source and as the executable: the first requests of a new user, and the reference in a browser.
import { describe, expect } from "bun:test";
import type { Browser } from "playwright-core";
import { openBrowser, visit } from "../support/browser.ts";
import { type Gateway, startGateway } from "../support/gateway.ts";
import { needs } from "../support/needs.ts";
import { variants } from "../support/variants.ts";

describe.each([...variants])("management API $name", ({ binary, needed }) => {
  const { afterAll, beforeAll, test } = needs(...needed);
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await startGateway({ binary });
  });
  afterAll(() => gateway.stop());

  const answer = async (method: string, path: string, body?: unknown) => {
    const response = await gateway.api(method, path, body);
    const text = await response.text();
    return {
      status: response.status,
      type: response.headers.get("content-type"),
      header: (name: string) => response.headers.get(name),
      text,
      json: () => JSON.parse(text),
    };
  };

  test("/healthz, /readyz and the status respond without credentials", async () => {
    const health = await answer("GET", "/healthz");
    expect([health.status, health.json()]).toEqual([200, { status: "ok" }]);
    const ready = await answer("GET", "/readyz");
    expect([ready.status, ready.json()["status"]]).toEqual([200, "ready"]);
    const status = (await answer("GET", "/api/v1/admin/status")).json();
    expect(status).toMatchObject({
      name: "sluice",
      authentication: "disabled",
      setup_required: true,
      sso_enabled: false,
      workers: 2,
      workers_ready: 2,
      warnings: [],
    });
    expect(status.version).toMatch(/^\d+\.\d+\.\d+/);
    expect(Object.values(status).join(" ")).not.toContain("127.0.0.1");
  });

  test("the description is the same YAML each time and names every path", async () => {
    const answers = [
      await answer("GET", "/openapi.yaml"),
      await answer("GET", "/openapi.yaml"),
      await answer("GET", "/openapi.yaml"),
    ];
    for (const each of answers) {
      expect(each.status).toBe(200);
      expect(each.type).toStartWith("application/yaml");
      expect(each.text).toBe(answers[0]!.text);
    }
    const description = Bun.YAML.parse(answers[0]!.text) as Record<string, object>;
    expect(String(description["openapi"])).toStartWith("3.1");
    for (const path of ["/api/v1/services", "/api/v1/services/{id}", "/api/v1/routes", "/healthz"])
      expect(Object.keys(description["paths"] ?? {})).toContain(path);
  });

  test("the reference is the same page each time and loads everything from the gateway itself", async () => {
    for (let i = 0; i < 3; i++) {
      const page = await answer("GET", "/docs");
      expect(page.status).toBe(200);
      expect(page.type).toStartWith("text/html");
      const links = [...page.text.matchAll(/(?:src|href)="([^"]*)"|"url":"(\/[^"]*)"/g)].map(
        ([, asset, data]) => asset ?? data,
      );
      expect(links).toEqual(["/docs/json", "/docs/scalar.js"]);
      for (const link of links) {
        const asset = await answer("GET", link ?? "");
        expect([link, asset.status]).toEqual([link, 200]);
      }
      // The URI of a vocabulary is only a name; browsers do not request it.
      const text = page.text.replaceAll("http://www.w3.org/2000/svg", "");
      expect(text).not.toMatch(/(?:https?:)?\/\/\w/);
    }
  });

  test("a service with its target and a route are created, replaced, patched and deleted with 200", async () => {
    const made = await answer("POST", "/api/v1/services", {
      name: "crud",
      targets: [{ host: "127.0.0.1", port: 9 }],
    });
    expect(made.status).toBe(200);
    expect(made.json()).toMatchObject({ name: "crud", protocol: "http", connect_timeout: 5000 });
    expect(made.json().targets).toHaveLength(1);
    const revision = Number(made.header("x-config-revision"));
    const target = await answer("POST", "/api/v1/services/crud/targets", {
      host: "127.0.0.1",
      port: 10,
    });
    expect([target.status, target.json().weight]).toEqual([200, 100]);
    const route = await answer("POST", "/api/v1/routes", {
      name: "crud",
      service_id: "crud",
      hosts: ["crud.test"],
      priority: 5,
    });
    expect([route.status, route.json().priority]).toEqual([200, 5]);

    const patched = await answer("PATCH", "/api/v1/routes/crud", { tags: ["a"] });
    expect(patched.json()).toMatchObject({ tags: ["a"], priority: 5 });
    const replaced = await answer("PUT", "/api/v1/routes/crud", {
      name: "crud",
      service_id: "crud",
    });
    expect(replaced.json()).toMatchObject({ tags: [], priority: 0, hosts: [] });
    expect(Number(replaced.header("x-config-revision"))).toBe(revision + 4);

    const used = await answer("DELETE", "/api/v1/services/crud");
    expect([used.status, used.json().error]).toEqual([409, expect.stringContaining("crud")]);
    for (const path of ["/api/v1/routes/crud", "/api/v1/services/crud"]) {
      const deleted = await answer("DELETE", path);
      expect([deleted.status, deleted.json()]).toEqual([200, { deleted: true }]);
      expect((await answer("GET", path)).status).toBe(404);
    }
  });

  const refusals = [
    { why: "no such path", method: "GET", path: "/api/v1/nothing", status: 404 },
    { why: "no such object", method: "GET", path: "/api/v1/services/nothing", status: 404 },
    { why: "not a method of the path", method: "DELETE", path: "/healthz", status: 405 },
    { why: "no JSON", method: "POST", path: "/api/v1/services", body: "{", status: 400 },
    {
      why: "a field that does not exist",
      method: "POST",
      path: "/api/v1/services",
      body: { name: "x", colour: "red" },
      status: 400,
    },
    {
      why: "a value out of range",
      method: "POST",
      path: "/api/v1/services",
      body: { name: "x", targets: [{ host: "127.0.0.1", port: 70_000 }] },
      status: 400,
      error: "targets[0].port",
    },
  ];
  test.each(refusals)("an error has one string, its message: $why", async (row) => {
    const refused = await answer(row.method, row.path, row.body);
    expect([row.why, refused.status]).toEqual([row.why, row.status]);
    expect(refused.type).toBe("application/json; charset=utf-8");
    expect(refused.json()).toEqual({ error: expect.stringContaining(row.error ?? "") });
  });

  test("a page of another site cannot change the configuration", async () => {
    const response = await gateway.api(
      "POST",
      "/api/v1/services",
      { name: "evil" },
      { origin: "https://evil.example" },
    );
    expect(response.status).toBe(403);
    expect((await answer("GET", "/api/v1/services/evil")).status).toBe(404);
  });
});

describe.each([...variants])("API reference $name in a browser", ({ binary, needed }) => {
  const { afterAll, beforeAll, test } = needs(...needed, "chromium");
  let gateway: Gateway;
  let browser: Browser;

  beforeAll(async () => {
    [gateway, browser] = await Promise.all([startGateway({ binary }), openBrowser()]);
  });
  afterAll(async () => {
    await browser.close();
    await gateway.stop();
  });

  test.each([
    { why: "a desktop in daylight", dark: false, width: 1280 },
    { why: "a telephone at night", dark: true, width: 380 },
  ])("it opens without errors or requests to other origins: $why", async ({ dark, width }) => {
    const shown = await visit(browser, {
      url: `${gateway.admin}/docs`,
      shows: "h1:has-text('Sluice management API')",
      dark,
      width,
    });
    expect(shown.complaints).toEqual([]);
    const origins = shown.requested
      .filter((url) => !/^(?:data|blob):/.test(url))
      .map((url) => new URL(url).origin);
    expect([...new Set(origins)]).toEqual([gateway.admin]);
    expect(shown.title).toBe("Sluice management API");
    // The first sections render at once, the others when the user scrolls to them.
    expect(shown.text).toContain("Services");
  });
});
