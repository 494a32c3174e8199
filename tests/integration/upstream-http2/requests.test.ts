// Requests and responses over HTTP/2 targets: bodies in both directions, trailers, interim responses, errors.
import { afterAll, expect, test } from "bun:test";
import { startDataPlane } from "../../support/data-plane.ts";
import { echo, startHttp2Target, type StreamHandler } from "./target.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function scene(handle: StreamHandler, service: object = {}) {
  const target = await startHttp2Target(handle);
  stops.push(() => target.stop());
  const gateway = await startDataPlane({
    services: [{ name: "app", protocol: "h2c", ...service, targets: [{ port: target.port }] }],
    routes: [{ name: "all", service_id: "app" }],
  });
  stops.push(() => gateway.drain(1000));
  return { target, gateway, url: `http://127.0.0.1:${gateway.port}` };
}

test("a request reaches the target with its fields, on one session", async () => {
  const { target, url } = await scene((stream) => {
    stream.respond({ ":status": 200, "content-type": "text/plain", "x-own": "yes" });
    stream.end("hello");
  });
  for (let index = 0; index < 5; index++) {
    const response = await fetch(`${url}/path?q=${index}`, { headers: { "x-mine": "é" } });
    expect([response.status, response.headers.get("x-own"), await response.text()]).toEqual([
      200,
      "yes",
      "hello",
    ]);
  }
  expect(target.sessions).toHaveLength(1);
  expect(target.requests[4]).toMatchObject({
    ":method": "GET",
    ":path": "/path?q=4",
    ":scheme": "http",
    ":authority": url.slice(7),
    "x-forwarded-host": url.slice(7),
  });
  expect(target.requests[4]).not.toContainKeys(["connection", "host", "transfer-encoding"]);
});

test.each([
  { bytes: 0, why: "an empty body" },
  { bytes: 100, why: "one that is buffered" },
  { bytes: 5_000_000, why: "one that needs several windows" },
])("a body of $bytes bytes passes in both directions: $why", async ({ bytes }) => {
  const { url } = await scene(echo);
  const body = Buffer.alloc(bytes, "abcdefg");
  const response = await fetch(url, { method: "POST", body });
  expect(response.status).toBe(200);
  expect(Buffer.from(await response.arrayBuffer()).equals(body)).toBe(true);
});
