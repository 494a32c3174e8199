// The API reference and its OpenAPI description: self-contained, complete, consistent with routes and guard.
import { describe, expect, test } from "bun:test";
import { accessTable } from "../../../src/api/access.ts";
import { createManagementApi } from "../../../src/api/server.ts";
import { controlPlane } from "../../unit/control/fixture.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

interface Operation {
  readonly summary?: string;
  readonly tags?: string[];
  readonly operationId?: string;
  readonly security?: Record<string, string[]>[];
  readonly "x-required-role"?: string;
  readonly parameters?: { name: string; in: string; schema?: object; description?: string }[];
  readonly requestBody?: { content: Record<string, { schema?: object }> };
  readonly responses: Record<string, { description?: string; content?: object }>;
}

interface Description {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly security: Record<string, string[]>[];
  readonly components: {
    readonly schemas: Record<string, object>;
    readonly securitySchemes: Record<string, object>;
  };
}

/** With the shared parameters, headers and responses in their places. */
async function describeApi(): Promise<Description> {
  const { body } = await api.callRoot("GET /openapi.yaml");
  const description = Bun.YAML.parse(body) as {
    readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
  const resolved = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return value;
    const { $ref: path } = value as { $ref?: string };
    const [, kind, name] =
      /^#\/components\/(parameters|headers|responses)\/(.+)$/.exec(path ?? "") ?? [];
    if (kind !== undefined && name !== undefined)
      return resolved(description.components[kind]?.[name] ?? `no ${path}`);
    if (Array.isArray(value)) return value.map(resolved);
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, resolved(part)]));
  };
  return resolved(description) as Description;
}

/** Actions without a request body. */
const withoutBody = [
  "POST /api/v1/plugins/directory",
  "POST /api/v1/nodes/{id}/drain",
  "POST /api/v1/acme/accounts/{id}/rotate-key",
  ...["POST /api/v1/certificates/{id}/renew", "POST /api/v1/alerts/{id}/test"],
  ...["POST /api/v1/sso/test", "POST /api/v1/admin/token"],
  "POST /api/v1/auth/logout",
  "POST /api/v1/local-ca/rotate",
  "POST /api/v1/revisions/{id}/restore",
  "POST /api/v1/revisions/{id}/undo",
];

const operationsOf = ({ paths }: Description) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      line: `${method.toUpperCase()} ${path}`,
      method,
      path,
      operation,
    })),
  );

describe("/docs and /openapi.yaml", () => {
  test("respond the same every time", async () => {
    for (const path of ["/docs", "/docs/json", "/openapi.yaml", "/openapi.json"]) {
      const first = await api.callRoot(`GET ${path}`);
      expect(first.status).toBe(200);
      for (let again = 0; again < 2; again++) {
        const next = await api.callRoot(`GET ${path}`);
        expect({ status: next.status, body: next.body }).toEqual({ status: 200, body: first.body });
      }
    }
  });

  test("the page loads nothing from elsewhere, and its policy would not let it", async () => {
    const { body, headers } = await api.callRoot("GET /docs");
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(body).not.toMatch(/(?:src|href|url)\s*[=(:]\s*["']?(?:https?:)?\/\//i);
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval|script-src[^;]*unsafe-inline/);
    const inline = [...body.matchAll(/<script\b(?![^>]*\bsrc=)[^>]*>(.*?)<\/script>/gs)];
    for (const [, text] of inline) {
      const hash = new Bun.CryptoHasher("sha256").update(text).digest("base64");
      expect(policy).toContain(`'sha256-${hash}'`);
    }
    const [, script] = body.match(/<script src="([^"]+)"/) ?? [];
    const loaded = await api.callRoot(`GET ${script}`);
    expect(loaded.status).toBe(200);
    expect(loaded.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(loaded.body.length).toBeGreaterThan(1_000_000);
    const [, settings] = body.match(/data-configuration='([^']+)'/) ?? [];
    const { url } = JSON.parse(settings ?? "") as { url: string };
    expect((await api.callRoot(`GET ${url}`)).status).toBe(200);
    expect(body).not.toMatch(/content="[^"]*"[^\s/>]/);
  });

  test("the start page is the web UI, or links to the reference when it was not built", async () => {
    const { status, headers, body } = await api.callRoot("GET /");
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(body).toContain("/docs");
  });

  test("JSON and YAML describe the same", async () => {
    const { body } = await api.callRoot("GET /docs/json");
    const yaml = await api.callRoot("GET /openapi.yaml");
    expect(Bun.YAML.parse(yaml.body)).toEqual(body);
    expect(body.openapi).toBe("3.1.0");
    const json = await api.callRoot("GET /openapi.json");
    expect(json.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(json.body).toEqual(body);
  });
});

describe("the description", () => {
  test("of every operation is complete", async () => {
    const description = await describeApi();
    const operations = operationsOf(description);
    expect(operations.length).toBeGreaterThan(25);
    for (const { line, method, path, operation } of operations) {
      const missing: string[] = [];
      if (!operation.summary) missing.push("summary");
      if (!operation.tags?.length) missing.push("tags");
      const isPage = operation.responses["302"] !== undefined;
      if (!operation.responses["200"]?.content && !isPage) missing.push("response schema");
      if (["post", "put", "patch"].includes(method) && !withoutBody.includes(line)) {
        if (!operation.requestBody?.content["application/json"]?.schema)
          missing.push("body schema");
        if (!operation.responses["400"]) missing.push("400");
      }
      if (!operation.responses["500"]?.content) missing.push("error shape");
      for (const [, name] of path.matchAll(/\{(\w+)\}/g))
        if (!operation.parameters?.some((one) => one.in === "path" && one.name === name))
          missing.push(`parameter ${name}`);
      expect({ line, missing }).toEqual({ line, missing: [] });
    }
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("lists for every change the refusal while another process takes over", async () => {
    const changes = operationsOf(await describeApi()).filter(
      ({ operation }) => operation.responses["412"] !== undefined,
    );
    expect(changes.length).toBeGreaterThan(50);
    for (const { line, operation } of changes)
      expect([line, operation.responses["409"]?.description]).toEqual([
        line,
        expect.stringContaining("Retry-After"),
      ]);
  });

  test("writes what many operations share once, and refers to it", async () => {
    const { body } = await api.callRoot("GET /docs/json");
    const references = JSON.stringify(body.paths).matchAll(/"#\/components\/(\w+)\/([\w.-]+)"/g);
    const found = new Set([...references].map(([, kind, name]) => `${kind}/${name}`));
    for (const path of found) {
      const [kind = "", name = ""] = path.split("/");
      expect(Object.keys(body.components[kind])).toContain(name);
    }
    for (const name of [
      "parameters/dry_run",
      "parameters/wait",
      "headers/ETag",
      "responses/Error403",
    ])
      expect(found).toContain(name);
    // 719 KB without; the reference reads all of it before it shows anything.
    expect(JSON.stringify(body).length).toBeLessThan(600_000);
  });

  test("refers only to schemas that it holds", async () => {
    const description = await describeApi();
    const references = JSON.stringify(description).matchAll(/"#\/components\/schemas\/(\w+)"/g);
    const names = new Set([...references].map(([, name]) => name ?? ""));
    expect(names.size).toBeGreaterThan(8);
    for (const name of names) expect(Object.keys(description.components.schemas)).toContain(name);
  });

  test("explains every field of what can be written", async () => {
    const { components } = await describeApi();
    const bare: string[] = [];
    const visit = (schema: unknown, at: string) => {
      if (typeof schema !== "object" || schema === null) return;
      const properties = (schema as { properties?: Record<string, object> }).properties ?? {};
      for (const [name, property] of Object.entries(properties)) {
        if (!("description" in property)) bare.push(`${at}.${name}`);
        visit(property, `${at}.${name}`);
      }
    };
    for (const name of [
      ...["ServiceInput", "TargetInput", "RouteInput", "SettingsInput"],
      ...["UserInput", "PasswordChange", "OwnPassword", "TotpCode"],
    ])
      visit(components.schemas[name], name);
    expect(bare).toEqual([]);
  });
});

describe("authentication", () => {
  test("is named in the description: a bearer token, a header, a cookie, and on streams the query", async () => {
    const { components, security } = await describeApi();
    expect(components.securitySchemes).toMatchObject({
      bearer: { type: "http", scheme: "bearer" },
      adminToken: { type: "apiKey", in: "header", name: "X-Admin-Token" },
      session: {
        type: "apiKey",
        in: "cookie",
        name: expect.stringMatching(/^sluice_session_[0-9a-f]{8}$/),
      },
      accessToken: { type: "apiKey", in: "query", name: "access_token" },
    });
    expect(security).toEqual([{ bearer: [] }, { adminToken: [] }, { session: [] }]);
  });

  test("is stated at every operation, with its role", async () => {
    for (const { line, operation } of operationsOf(await describeApi())) {
      const [method = "", path = ""] = line.replaceAll(/\{(\w+)\}/g, ":$1").split(" ");
      const row = accessTable.find((one) => one.path === path);
      const role = row?.methods[method] as string | undefined;
      const isOpen = role === "open";
      expect([line, operation["x-required-role"]]).toEqual([line, isOpen ? undefined : role]);
      const schemes = operation.security?.flatMap((one) => Object.keys(one));
      const all = ["bearer", "adminToken", "session", ...(row?.stream ? ["accessToken"] : [])];
      expect([line, schemes]).toEqual([line, isOpen ? [] : all]);
      expect([line, operation.responses["401"] !== undefined]).toEqual([
        line,
        !isOpen || path.endsWith("/login"),
      ]);
    }
  });
});

describe("the guard's table", () => {
  const { routed } = createManagementApi({
    control: controlPlane().control,
    clock: { now: () => 0 },
    log: { write() {}, debug() {}, info() {}, warn() {}, error() {} },
    version: "0",
    startedAt: 0,
    boundHost: "127.0.0.1",
  });
  const guarded = accessTable.flatMap(({ path, methods }) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );

  test("has a row for every route, and nothing else", () => {
    expect([...routed].sort()).toEqual([...guarded].sort());
  });

  test("and the description agree", async () => {
    const described = operationsOf(await describeApi()).map(({ line }) =>
      line.replaceAll(/\{(\w+)\}/g, ":$1"),
    );
    const hidden = [
      ...["GET /docs", "GET /docs/json", "GET /docs/scalar.js", "GET /", "GET /assets/:name"],
      ...["GET /ui", "GET /ui/*"],
    ];
    expect([...described, ...hidden].sort()).toEqual([...guarded].sort());
  });

  test("makes only these paths public", () => {
    const open = accessTable.filter(({ methods }) => Object.values(methods).includes("open"));
    expect(open.map(({ path }) => path).sort()).toEqual([
      "/",
      "/api/v1/admin/status",
      "/api/v1/auth/login",
      "/api/v1/auth/sso/callback",
      "/api/v1/auth/sso/start",
      "/api/v1/local-ca/root.crt",
      "/api/v1/local-ca/root.pem",
      "/assets/:name",
      "/docs",
      "/docs/json",
      "/docs/scalar.js",
      "/healthz",
      "/metrics",
      "/openapi.json",
      "/openapi.yaml",
      "/readyz",
      "/schema.json",
      "/ui",
      "/ui/*",
    ]);
  });

  test("lets viewers only read; only admins change listeners and settings, and see access", () => {
    // Self-service of users: the handler checks the owner.
    const self = /^\/api\/v1\/(users\/:id\/(password|totp)|auth\/(me|logout|sessions))\b/;
    const access = /^\/api\/v1\/(secrets|users|tokens|sso|admin|audit)\b/;
    for (const { path, methods } of accessTable)
      for (const [method, role] of Object.entries(methods)) {
        if (role === "open") expect(method).toBe(path.endsWith("/login") ? "POST" : "GET");
        else if (self.test(path)) expect(role).toBe("viewer");
        else if (access.test(path)) expect(role).toBe("admin");
        // A query that needs a body.
        else if (method === "GET" || path.endsWith("/explain")) expect(role).toBe("viewer");
        else
          expect(role).toBe(
            /listeners|settings|import|restore|nodes|local-ca|plugins\/directory/.test(path)
              ? "admin"
              : "editor",
          );
      }
  });
});
