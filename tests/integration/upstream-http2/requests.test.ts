// Requests and responses over HTTP/2 targets: bodies in both directions, trailers, interim responses, errors.
import { afterAll, expect, test } from "bun:test";
import { cleanupsOf } from "../../support/cleanups.ts";
import { startDataPlane } from "../../support/data-plane.ts";
import type { ServerHttp2Stream } from "node:http2";
import { eventually } from "../../support/poll.ts";
import { echo, startHttp2Target, type StreamHandler } from "./target.ts";

const stops = cleanupsOf(afterAll);

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

test("least_connections counts streams, not sessions", async () => {
  const held: ServerHttp2Stream[] = [];
  const counts = new Map<string, number>();
  const handle =
    (name: string): StreamHandler =>
    (stream, fields) => {
      counts.set(name, (counts.get(name) ?? 0) + 1);
      if (fields[":path"] === "/held") held.push(stream);
      else {
        stream.respond({ ":status": 200 });
        stream.end(name);
      }
    };
  const targets = [await startHttp2Target(handle("one")), await startHttp2Target(handle("two"))];
  for (const target of targets) stops.push(() => target.stop());
  const service = { name: "app", protocol: "h2c", algorithm: "least_connections" } as const;
  const gateway = await startDataPlane({
    services: [{ ...service, targets: targets.map(({ port }) => ({ port })) }],
    routes: [{ name: "all", service_id: "app" }],
  });
  stops.push(() => gateway.stop());
  const open = Array.from({ length: 20 }, () => fetch(`${gateway.url}/held`));
  await eventually(() => held.length === 20);
  expect([...counts.values()]).toEqual([10, 10]);
  // Ends the streams of one target: the next requests all go there.
  const own = held.filter((stream) => stream.session === held[0]?.session);
  for (const stream of own) stream.respond({ ":status": 204 }, { endStream: true });
  await eventually(
    () =>
      gateway.targets.active(gateway.targets.rowOf("app-0")) +
        gateway.targets.active(gateway.targets.rowOf("app-1")) ===
      10,
  );
  const names = new Set<string>();
  for (let index = 0; index < 5; index++) names.add(await (await fetch(gateway.url)).text());
  expect(names.size).toBe(1);
  for (const stream of held.filter((one) => !own.includes(one)))
    stream.respond({ ":status": 204 }, { endStream: true });
  await Promise.all(open);
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
