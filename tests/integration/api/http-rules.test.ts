// Rules of HTTP that hold for every endpoint: conditional reads, content codings of bodies, closing connections, warnings.
import { describe, expect, test } from "bun:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { sendRaw } from "../../support/raw-http.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

describe("If-None-Match of a read", () => {
  const read = (path: string, method: string, field: string) =>
    fetch(`${api.url}/api/v1${path}`, { method, headers: { "if-none-match": field } });

  test.each(["/settings", "/sso", "/services", "/services/known"])(
    "%s: 304 without a body, with the ETag, for what the client has",
    async (path) => {
      await api.call("POST /services", { body: { name: "known" } });
      const { headers } = await api.call(`GET ${path}`);
      const tag = headers.get("etag");
      expect(tag).not.toBeNull();
      for (const method of ["GET", "HEAD"]) {
        const response = await read(path, method, tag ?? "");
        expect([response.status, response.headers.get("etag")]).toEqual([304, tag]);
        expect(response.headers.get("content-type")).toBeNull();
        expect(response.headers.get("x-content-type-options")).toBe("nosniff");
        expect(await response.text()).toBe("");
      }
    },
  );

  test.each([
    ["the tag", (tag: string) => tag, 304],
    ["the weak tag: the comparison is weak", (tag: string) => `W/${tag}`, 304],
    ["a list with the tag", (tag: string) => `"a,b", W/"c" , ${tag}`, 304],
    ["any", () => "*", 304],
    ["another tag", () => '"other"', 200],
    ["a part of the tag", (tag: string) => `${tag.slice(0, 5)}"`, 200],
    ["the tag without its quotes", (tag: string) => tag.slice(1, -1), 200],
  ])("%s", async (_, fieldOf, status) => {
    const { headers } = await api.call("GET /settings");
    const response = await read("/settings", "GET", fieldOf(headers.get("etag") ?? ""));
    expect(response.status).toBe(status);
  });

  test("is no condition of what is no success", async () => {
    expect((await read("/services/nowhere", "GET", "*")).status).toBe(404);
  });

  test("a change gives the resource a new tag", async () => {
    const { etag } = Object.fromEntries((await api.call("GET /settings")).headers);
    await api.call("PATCH /settings", { body: { debug_headers: true } });
    expect((await read("/settings", "GET", etag ?? "")).status).toBe(200);
  });
});

describe("Content-Encoding of a body", () => {
  const post = (raw: BodyInit, coding: string) =>
    api.call("POST /services", {
      raw,
      headers: { "content-type": "application/json", "content-encoding": coding },
    });
  const body = (name: string) => Buffer.from(JSON.stringify({ name }));
  const bomb = Buffer.alloc(100_000_000, " ");

  test.each([
    ["gzip", gzipSync],
    ["x-gzip", gzipSync],
    ["GZIP", gzipSync],
    ["deflate", deflateSync],
    ["br", (bytes: Buffer) => brotliCompressSync(bytes)],
    ["identity", (bytes: Buffer) => bytes],
  ])("%s is decoded", async (coding, encode) => {
    const raw = new Uint8Array(encode(body(`as-${coding}`)));
    const { status, body: made } = await post(raw, coding);
    expect([status, made.name]).toEqual([200, `as-${coding}`]);
  });

  test.each([
    ["zstd", zstdCompressSync(body("z"))],
    ["compress", body("z")],
    ["gzip, gzip", gzipSync(gzipSync(body("z")))],
    ["constructor", body("z")],
  ])("%s is refused with the codings that are decoded", async (coding, raw) => {
    const { status, headers, body: refused } = await post(raw, coding);
    expect([status, headers.get("accept-encoding")]).toEqual([415, "gzip, deflate, br"]);
    expect(refused.error).toStartWith("Content-Encoding: the body must");
  });

  test.each([
    ["gzip", gzipSync(bomb)],
    ["deflate", deflateSync(bomb)],
    ["br", brotliCompressSync(bomb.subarray(0, 50_000_000))],
  ])("a %s bomb is refused at the limit of the body", async (coding, raw) => {
    expect(raw.byteLength).toBeLessThan(1_000_000);
    const { status, body: refused } = await post(raw, coding);
    expect([status, refused.error]).toEqual([413, "the decoded body is larger than 1048576 bytes"]);
  });

  test.each([
    ["cut off", gzipSync(body("cut")).subarray(0, 15)],
    ["no gzip at all", body("plain")],
    ["with something after it", Buffer.concat([gzipSync(body("more")), Buffer.from("more")])],
  ])("gzip that is %s is refused", async (_, raw) => {
    const { status, body: refused } = await post(raw, "gzip");
    expect([status, refused.error]).toEqual([400, "the body is not valid gzip"]);
  });

  test("an import is decoded within its own limit", async () => {
    const routes = Array.from({ length: 20_000 }, (_, at) => ({
      name: `r${at}`,
      hosts: [`h${at}.test`],
    }));
    const text = JSON.stringify({ format: 1, routes });
    expect(text.length).toBeGreaterThan(1_048_576 / 2);
    const { status, body: made } = await api.call("POST /import?dry_run=1", {
      raw: gzipSync(text),
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
    });
    expect([status, made.changes.length]).toEqual([200, 20_000]);
  });
});

describe("Connection", () => {
  const request = (field: string) =>
    sendRaw(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\n${field}\r\n`, {
      port: api.port,
    });

  test.each(["close", "Close", "keep-alive, close"])("%s is answered with close", async (value) => {
    const text = await request(`Connection: ${value}\r\n`);
    expect(text).toStartWith("HTTP/1.1 200");
    expect(text.toLowerCase()).toContain("\r\nconnection: close\r\n");
  });
});

describe("a route that matches every request", () => {
  const warning = (name: string) =>
    expect.stringContaining(`route "${name}" matches every request that no other route matches`);

  test.each([
    ["without any condition", {}],
    ["with the path /", { paths: ["/"] }],
  ])("%s is made with a warning", async (why, fields) => {
    const name = why.replaceAll(" ", "-").replace("/", "root");
    const { status, headers } = await api.call("POST /routes?dry_run=1", {
      body: { name, ...fields },
    });
    expect(status).toBe(200);
    expect(headers.get("x-warning")).toEqual(warning(name));
  });

  test.each([
    ["a host", { hosts: ["a.test"] }],
    ["a path", { paths: ["/app"] }],
    ["a method", { methods: ["GET"] }],
    ["it is disabled", { enabled: false }],
  ])("%s: no warning", async (_, fields) => {
    const { headers } = await api.call("POST /routes?dry_run=1", { body: fields });
    expect(headers.get("x-warning")).toBeNull();
  });

  test("a change of it has no warning, and removing its last host has one", async () => {
    const route = await api.create("/routes", { name: "all" });
    const patch = (body: object) => api.call(`PATCH /routes/${route.id}`, { body });
    expect((await patch({ tags: ["x"] })).headers.get("x-warning")).toBeNull();
    expect((await patch({ hosts: ["a.test"] })).headers.get("x-warning")).toBeNull();
    expect((await patch({ hosts: [] })).headers.get("x-warning")).toEqual(warning("all"));
  });
});
