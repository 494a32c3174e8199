// Maintenance of applications as clients see it: the page, Retry-After, and the networks that are served as usual.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { talk } from "../listeners/world.ts";
import { useGateway } from "./client.ts";

const api = useGateway();

/** Addresses of this machine, as those of two clients. */
const STAFF = "127.0.0.2";
const VISITOR = "127.0.0.3";

let origin: ReturnType<typeof Bun.serve>;
let served = 0;
beforeAll(async () => {
  origin = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch() {
      served++;
      return new Response("the application");
    },
  });
  const upstream = `http://127.0.0.1:${origin.port}`;
  await api.create("/applications", { name: "shop", domains: ["shop.test"], upstream });
});
afterAll(() => origin.stop(true));

async function set(fields: object) {
  const { status, body } = await api.call("PATCH /applications/shop", { body: fields });
  return status === 200 ? "" : body.error;
}

async function visit(from: string, method = "GET") {
  const head = `${method} / HTTP/1.1\r\nHost: shop.test\r\nAccept: text/html\r\nConnection: close\r\n\r\n`;
  const answer = await talk(api.gateway.httpPort, [head], from);
  const [top = "", body = ""] = answer.split("\r\n\r\n");
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "im").exec(top)?.[1] ?? null;
  return {
    status: Number(top.split(" ")[1]),
    retryAfter: field("retry-after"),
    type: field("content-type"),
    body,
  };
}

const usual = { status: 200, retryAfter: null, body: "the application" };

test("without options it is the page of the gateway, for all clients", async () => {
  expect(await set({ maintenance: true })).toBe("");
  const before = served;
  for (const client of [STAFF, VISITOR]) {
    const { body, ...head } = await visit(client);
    expect(head).toEqual({ status: 503, retryAfter: "300", type: "text/html; charset=utf-8" });
    expect(body).toContain("<html");
  }
  expect(served).toBe(before);
});

test("with options it is the owner's page, and exempt networks get the application", async () => {
  const page = "<!doctype html><title>Back at noon</title>";
  const options = { html: page, retry_after: 90, bypass_cidrs: [`${STAFF}/32`] };
  expect(await set({ maintenance_options: options })).toBe("");
  expect(await visit(VISITOR)).toEqual({
    status: 503,
    retryAfter: "90",
    type: "text/html; charset=utf-8",
    body: page,
  });
  expect(await visit(VISITOR, "HEAD")).toMatchObject({ status: 503, retryAfter: "90", body: "" });
  expect(await visit(VISITOR, "POST")).toMatchObject({ status: 503, body: page });
  expect(await visit(STAFF)).toMatchObject(usual);
});

test("another page and other networks apply to the next request", async () => {
  const options = { html: "<p>Later</p>", retry_after: 0, bypass_cidrs: [`${VISITOR}/32`] };
  expect(await set({ maintenance_options: options })).toBe("");
  expect(await visit(STAFF)).toMatchObject({ status: 503, retryAfter: "0", body: "<p>Later</p>" });
  expect(await visit(VISITOR)).toMatchObject(usual);
});

test("its end serves all clients, and keeps the options for the next time", async () => {
  expect(await set({ maintenance: false })).toBe("");
  for (const client of [STAFF, VISITOR]) expect(await visit(client)).toMatchObject(usual);
  expect(await set({ maintenance: true })).toBe("");
  expect(await visit(STAFF)).toMatchObject({ status: 503, body: "<p>Later</p>" });
  expect(await visit(VISITOR)).toMatchObject(usual);
});

test.each([
  [{ retry_after: -1 }, "maintenance_options.retry_after"],
  [{ retry_after: 31_536_001 }, "maintenance_options.retry_after"],
  [{ bypass_cidrs: ["127.0.0.2/33"] }, "maintenance_options.bypass_cidrs[0]"],
  [{ html: "x".repeat(262_145) }, "maintenance_options.html"],
])("options that are wrong are refused, and change nothing: %#", async (options, place) => {
  expect(await set({ maintenance_options: options })).toContain(place);
  expect(await visit(STAFF)).toMatchObject({ status: 503, body: "<p>Later</p>" });
});

test("the largest values are accepted", async () => {
  const options = { html: "x".repeat(262_144), retry_after: 31_536_000, bypass_cidrs: [] };
  expect(await set({ maintenance_options: options })).toBe("");
  const { retryAfter, body } = await visit(STAFF);
  expect([retryAfter, body.length]).toEqual(["31536000", 262_144]);
});
