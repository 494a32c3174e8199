// Checks before any handler: paths, methods, bodies, origins and hosts; one shape for every error.
import { describe, expect, test } from "bun:test";
import { connectRaw, sendRaw } from "../../support/raw-http.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

describe("every error has one shape", () => {
  const cases = [
    { why: "an unknown path", line: "GET /nope", status: 404 },
    { why: "an unknown path outside the API", line: "GET !/nope", status: 404 },
    { why: "a path with a slash too many", line: "GET /services/", status: 404 },
    { why: "another case", line: "GET !/API/v1/services", status: 404 },
    { why: "an unknown id", line: "GET /services/nope", status: 404 },
    { why: "a broken escape", line: "GET /services/%zz", status: 400 },
    { why: "a wrong method", line: "DELETE /services", status: 405 },
    { why: "a method of the path beside", line: "PUT /services", status: 405 },
    { why: "a preflight: no other site may ask", line: "OPTIONS /services", status: 405 },
    { why: "a query where none is known", line: "GET /services/x?y=1", status: 400 },
  ];
  test.each(cases)("$why is $status", async ({ line, status }) => {
    const answer = line.includes("!")
      ? await api.callRoot(line.replace("!", ""))
      : await api.call(line);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(Object.keys(answer.body)).toEqual(["error"]);
    expect(answer.body.error).toBeString();
    expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  const methods = [
    { path: "/api/v1/services", allow: "GET, HEAD, POST" },
    { path: "/api/v1/services/x", allow: "GET, HEAD, PUT, PATCH, DELETE" },
    { path: "/api/v1/listeners", allow: "GET, HEAD, POST" },
    { path: "/api/v1/settings", allow: "GET, HEAD, PUT, PATCH" },
    { path: "/healthz", allow: "GET, HEAD" },
  ];
  test.each(methods)("405 on $path names $allow", async ({ path, allow }) => {
    const answer = await api.callRoot(`OPTIONS ${path}`);
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe(allow);
  });

  test("a path is compared as sent", async () => {
    const head = "Host: localhost\r\nConnection: close\r\n\r\n";
    for (const path of [
      "//api/v1/services",
      "/api/v1//services",
      "/api/v1/servic%65s",
      "/x/..%2fhealthz",
    ])
      expect(await sendRaw(`GET ${path} HTTP/1.1\r\n${head}`, { port: api.port })).toStartWith(
        "HTTP/1.1 404 ",
      );
  });

  test("HEAD is GET without the body", async () => {
    const answer = await api.call("HEAD /services");
    expect(answer.status).toBe(200);
    expect(answer.body).toBe("");
    expect(answer.headers.get("etag")).toBeString();
  });
});

describe("every reply", () => {
  test.each(["/api/v1/services", "/healthz", "/nope", "/docs"])(
    "of %s carries the browser security headers",
    async (path) => {
      const { headers } = await api.callRoot(`GET ${path}`);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("x-request-id")).toBeString();
    },
  );
});

describe("a body", () => {
  const post = (raw: BodyInit, type: string | null = "application/json") =>
    api.call("POST /services", {
      raw,
      headers: { "content-type": type ?? "" },
    });

  const types = [
    { type: "text/plain", status: 415 },
    { type: "application/x-www-form-urlencoded", status: 415 },
    { type: "multipart/form-data; boundary=x", status: 415 },
    { type: "application/json; charset=latin1", status: 415 },
    { type: "application/jsonp", status: 415 },
    { type: "application/json; charset=utf-8", status: 200 },
    { type: "APPLICATION/JSON;charset=UTF-8", status: 200 },
    { type: "application/merge-patch+json", status: 200 },
  ];
  test.each(types)("of type $type is $status", async ({ type, status }) => {
    const name = `type-${Bun.hash(type)}`;
    const answer = await post(JSON.stringify({ name }), type);
    expect(answer.status).toBe(status);
  });

  test("without a type is 415", async () => {
    const body = '{"name":"untyped"}';
    const head = `POST /api/v1/services HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
    expect(await sendRaw(head + body, { port: api.port })).toStartWith("HTTP/1.1 415 ");
  });

  const malformed = [
    { why: "a missing brace", raw: '{"name": "x"', error: "line 1, column 13" },
    {
      why: "an error on a later line",
      raw: '{\n  "name": "x",\n  oops\n}',
      error: "line 3, column 3",
    },
    { why: "a comma too many", raw: '{"name": "x",}', error: "line 1, column 14" },
    { why: "something behind the end", raw: '{"name": "x"} 1', error: "line 1, column 15" },
    { why: "single quotes", raw: "{'name': 'x'}", error: "line 1, column 2" },
    { why: "a number that is none", raw: '{"name": 01}', error: "line 1, column 11" },
    { why: "nothing", raw: " ", error: "the body is empty" },
    { why: "a deep nest", raw: "[".repeat(100_000), error: "nested deeper than 64 levels" },
    { why: "a prototype", raw: '{"name":"x","__proto__":{"name":"y"}}', error: "__proto__" },
    { why: "a hidden prototype", raw: '{"name":"x","\\u005f_proto__":{}}', error: "__proto__" },
  ];
  test.each(malformed)("with $why is 400", async ({ raw, error }) => {
    const answer = await post(raw);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(error);
  });

  test("that is not UTF-8 is 400", async () => {
    const answer = await post(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]));
    expect(answer.status).toBe(400);
    expect(answer.body.error).toBe("the body is not valid UTF-8");
  });

  test("with a byte order mark is read", async () => {
    expect((await post('\ufeff{"name":"bom"}')).status).toBe(200);
  });

  test("of exactly 1 MiB is read, one byte more is 413", async () => {
    const of = (size: number) => {
      const start = '{"name":"big","description":""';
      return `${start}${" ".repeat(size - start.length - 1)}}`;
    };
    expect((await post(of(1_048_576))).status).toBe(200);
    const refused = await post(of(1_048_577));
    expect(refused.status).toBe(413);
    expect(refused.body).toEqual({ error: "the body is larger than 1048576 bytes" });
  });

  test("without a declared length is counted while it arrives", async () => {
    const connection = await connectRaw({ port: api.port });
    connection.write(
      "POST /api/v1/services HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const chunk = `10000\r\n${" ".repeat(65_536)}\r\n`;
    for (let sent = 0; sent < 17; sent++) connection.write(chunk);
    const text = await connection.untilClosed();
    expect(text).toStartWith("HTTP/1.1 413 ");
    expect(text).toContain('{"error":"the body is larger than 1048576 bytes"}');
  });
});

describe("a page of another site", () => {
  const change = (headers: Record<string, string>) =>
    api.call("POST /services", { body: { name: `o-${Bun.randomUUIDv7().slice(9)}` }, headers });
  const cases = [
    { why: "says so itself", headers: { origin: "http://evil.example" }, status: 403 },
    { why: "has no origin of its own", headers: { origin: "null" }, status: 403 },
    {
      why: "runs on another port of this machine",
      headers: { origin: "http://127.0.0.1:1" },
      status: 403,
    },
    {
      why: "is told from ours by the browser",
      headers: { "sec-fetch-site": "cross-site" },
      status: 403,
    },
    {
      why: "belongs to our site, but is another origin",
      headers: { "sec-fetch-site": "same-site" },
      status: 403,
    },
    { why: "is our own", headers: { "sec-fetch-site": "same-origin" }, status: 200 },
    { why: "is no page", headers: {}, status: 200 },
  ];
  test.each(cases)("that $why: $status", async ({ headers, status }) => {
    expect((await change(headers as Record<string, string>)).status).toBe(status);
  });

  test("the gateway's own origin is accepted", async () => {
    expect((await change({ origin: api.url })).status).toBe(200);
  });

  test("reads are allowed", async () => {
    const answer = await api.call("GET /services", { headers: { origin: "http://evil.example" } });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("access-control-allow-origin")).toBeNull();
  });
});

describe("the Host of a request to a listener on loopback", () => {
  const ask = async (host: string, path = "/api/v1/services") => {
    const text = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    return (await sendRaw(text, { port: api.port })).slice(9, 12);
  };
  test.each([
    { host: "localhost", status: "200" },
    { host: "LOCALHOST:1", status: "200" },
    { host: "127.0.0.1", status: "200" },
    { host: "[::1]:9080", status: "200" },
    { host: "10.1.2.3", status: "200" },
    { host: "evil.example", status: "403" },
    { host: "x.y", status: "403" },
    { host: "localhost.evil.example", status: "403" },
    { host: "127.0.0.1.evil.example", status: "403" },
  ])("$host is $status", async ({ host, status }) => {
    expect(await ask(host)).toBe(status);
  });

  test("is ignored for /healthz, and public_url's name is accepted", async () => {
    expect(await ask("evil.example", "/healthz")).toBe("200");
    await api.call("PATCH /settings", { body: { public_url: "https://admin.example" } });
    expect(await ask("admin.example")).toBe("200");
    expect(await ask("evil.example")).toBe("403");
    const origin = { origin: "https://admin.example" };
    const answer = await api.call("PATCH /settings", {
      body: { public_url: null },
      headers: origin,
    });
    expect(answer.status).toBe(200);
  });
});

describe("admin_allowed_cidrs", () => {
  test("outside it everything but health checks is 403, before any other check", async () => {
    const answer = await api.call("PATCH /settings?force=1", {
      body: { admin_allowed_cidrs: ["192.0.2.0/24"] },
    });
    expect(answer.status).toBe(200);
    const forwarded = { "x-forwarded-for": "192.0.2.1" };
    for (const path of ["/api/v1/services", "/metrics", "/docs", "/openapi.yaml", "/nope", "/"]) {
      const refused = await api.callRoot(`GET ${path}`, { headers: forwarded });
      expect(refused.status).toBe(403);
      expect(refused.body).toEqual({ error: "this address may not use the management API" });
    }
    const change = await api.call("PATCH /settings", { body: {} });
    expect(change.status).toBe(403);
    expect(change.headers.get("x-config-revision")).toBeNull();
    expect((await api.callRoot("GET /healthz")).body).toEqual({ status: "ok" });
    // For `sluice healthcheck`: this machine may call /readyz.
    expect((await api.callRoot("GET /readyz")).status).toBe(200);
  });
});
